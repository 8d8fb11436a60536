import type { Logger } from 'pino';

/** What a supervised process says to its supervisor over IPC. */
export interface ReadyMessage {
  readonly berth: 'ready';
  readonly details: Readonly<Record<string, string | number | boolean>>;
}
/** A start that failed in a way a person can mend: shown as it stands, without a stack. */
export interface FailedMessage {
  readonly berth: 'failed';
  readonly message: string;
}

/** To a process that was started held: what it was still to be told, and that it may start. */
export interface GoMessage {
  readonly berth: 'go';
  readonly env: Readonly<Record<string, string>>;
}

/** Set by a supervisor that starts a process before what it needs is there: its code is loaded meanwhile. */
export const HELD = 'HELD_BY_SUPERVISOR';

export interface Running {
  /** Told to the supervisor when the process serves. */
  readonly details: Readonly<Record<string, string | number | boolean>>;
  /** What is only begun once the process serves; a failure of it ends the process. Settled or not, `stop` may come. */
  rest?(): Promise<void>;
  /** Ends everything in order; called once. */
  stop(reason: StopReason): Promise<void>;
}
const ORPHAN_DEADLINE_MS = 25_000;

/** `signal`: asked by a person or a supervisor. `orphaned`: the supervisor is gone. */
export type StopReason = 'signal' | 'orphaned';

/**
 * Runs one process of Berth: starts it, says that it is ready, and stops it in order on SIGTERM, SIGINT or when the
 * supervisor that started it is gone. Exit codes: 0 after an ordered stop, 1 when the start or the stop failed.
 */
export async function runProcess(name: string, log: Logger, start: () => Promise<Running>): Promise<void> {
  let running: Running | undefined;
  let stopping: Promise<void> | undefined;
  let wanted: StopReason | undefined;
  const stop = (reason: StopReason) => {
    wanted ??= reason;
    if (!running) return;
    const r = running;
    if (reason === 'orphaned') {
      // Nobody is left who would end a stop that hangs.
      setTimeout(() => {
        log.error(`${name} did not stop within ${ORPHAN_DEADLINE_MS / 1000} s and ends now`);
        process.exit(1);
      }, ORPHAN_DEADLINE_MS).unref();
    }
    stopping ??= (async () => {
      try {
        await r.stop(reason);
        log.info(`${name} stopped`);
        process.exit(0);
      } catch (error) {
        log.error({ err: error }, `${name} did not stop in order`);
        process.exit(1);
      }
    })();
  };
  // Ctrl-C reaches the whole foreground group; under a supervisor the supervisor decides the order.
  process.on('SIGINT', () => {
    if (!process.connected) stop('signal');
  });
  process.on('SIGTERM', () => stop('signal'));
  if (process.connected) process.on('disconnect', () => stop('orphaned'));
  try {
    if (process.connected && process.env[HELD] !== undefined) {
      Object.assign(process.env, await told(() => wanted));
    }
    running = await start();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.error({ err: error }, `${name} could not start: ${message}`);
    tell({ berth: 'failed', message });
    process.exitCode = 1;
    setTimeout(() => process.exit(1), 100).unref();
    return;
  }
  tell({ berth: 'ready', details: running.details });
  log.info(running.details, `${name} ready`);
  if (wanted) {
    stop(wanted);
    return;
  }
  try {
    await running.rest?.();
  } catch (error) {
    // A stop in between takes away what the rest needs.
    if (stopping) return;
    log.fatal(
      { err: error },
      `${name} could not go on: ${error instanceof Error ? error.message : String(error)}`,
    );
    process.exitCode = 1;
    setTimeout(() => process.exit(1), 100).unref();
  }
}

/** Waits for the supervisor's word; a process that is asked to stop before it began has nothing to end. */
function told(stopWanted: () => StopReason | undefined): Promise<GoMessage['env']> {
  return new Promise((resolve) => {
    const leave = () => process.exit(0);
    if (stopWanted() !== undefined) leave();
    process.once('SIGTERM', leave);
    process.once('disconnect', leave);
    const hear = (message: GoMessage | null) => {
      if (message?.berth !== 'go') return;
      process.off('message', hear);
      process.off('SIGTERM', leave);
      process.off('disconnect', leave);
      resolve(message.env);
    };
    process.on('message', hear);
  });
}

function tell(message: ReadyMessage | FailedMessage): void {
  if (process.connected) process.send?.(message);
}
