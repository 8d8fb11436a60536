import { formatBytes, formatSeconds, MIB } from '#domain/units.js';
import {
  LoadFailure,
  PortTaken,
  type EngineExit,
  type EngineStateFile,
  type LoadProgress,
  type ReadyFacts,
} from '../ports.js';
import { askEngine } from './engine-http.js';
import type { EngineDialect } from './engine-dialect.js';
import { kernelKills } from './kernel-kills.js';
import { exitFailure } from './load-failure.js';
import { filterLoadTimeLines } from './log-tail.js';
import type { PortWatch } from './port.js';
import { readLoadedBytes, readProcessMemory, totalFileBytes } from './process-memory.js';

export interface Timing {
  /** A load that shows no progress for so long has stalled. */
  readonly stallMs: number;
  /** The longest that a load of so many bytes may take, however steadily it moves. */
  readonly longestLoadMs?: (bytes: number) => number;
  /** Between SIGTERM and SIGKILL. */
  readonly killAfterMs: number;
  /** How often its log is cut and its state file looked for; 30 s when left out. */
  readonly keepFilesEveryMs?: number;
}

export const DEFAULT_TIMING: Timing = { stallMs: 60_000, killAfterMs: 10_000 };

/** Ten minutes, and what the bytes take from a disk of 10 MB/s. */
export const longestLoadMs = (bytes: number): number => 600_000 + bytes / 10_000;

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 100;
/** Young engines are asked often; a load of minutes can wait a tenth of a second more. */
const OFTEN_FOR_MS = 5000;
const PROGRESS_EVERY_MS = 100;
const HEALTH_TIMEOUT_MS = 10_000;

interface Watched {
  readonly state: EngineStateFile;
  readonly dialect: EngineDialect;
  readonly timing: Timing;
  readonly port: PortWatch;
  readonly exited: Promise<EngineExit>;
  readonly isGone: () => EngineExit | undefined;
  readonly log: () => string;
  readonly onProgress: (progress: LoadProgress) => void;
  readonly signal?: AbortSignal;
}

/** Waits until the engine serves what its plan says. @throws LoadFailure; the caller ends the process. */
export async function awaitReady(watched: Watched): Promise<ReadyFacts> {
  const { state, dialect, signal } = watched;
  const progress = new Progress(watched);
  const fail = (failure: ConstructorParameters<typeof LoadFailure>[0], message: string) =>
    new LoadFailure(failure, message, filterLoadTimeLines(watched.log()));
  let pollMs = FIRST_POLL_MS;
  const startedAtMs = performance.now();
  const killsBefore = kernelKills() ?? 0;
  const kills = (): number => (kernelKills() ?? 0) - killsBefore;
  const timer = setInterval(() => progress.look(), PROGRESS_EVERY_MS);
  const interrupted = new Promise<'aborted' | 'stalled' | 'too-long'>((resolve) => {
    progress.onInterrupt = resolve;
    if (signal?.aborted) resolve('aborted');
    signal?.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
  const gone = watched.exited.then(() => 'gone' as const);

  try {
    for (;;) {
      const health = watched.port.mayAsk()
        ? askEngine(state.port, dialect.healthPath, { timeoutMs: HEALTH_TIMEOUT_MS })
        : new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 0));
      const first = await Promise.race([health, interrupted, gone]);
      if (first === 'aborted') throw fail('cancelled', 'The load was cancelled.');
      if (first === 'stalled') {
        throw fail(
          'stalled',
          `The engine made no progress for ${formatSeconds(watched.timing.stallMs / 1000)} ` +
            `after ${formatBytes(progress.loadedBytes)} of ${formatBytes(progress.totalBytes)}.`,
        );
      }
      if (first === 'too-long') {
        throw fail(
          'stalled',
          `The engine did not serve within ${formatSeconds(progress.capMs / 1000)}, the longest that ` +
            `${formatBytes(progress.totalBytes)} may take to load; it had ${formatBytes(progress.loadedBytes)}.`,
        );
      }
      const exit = watched.isGone();
      if (exit) throw goneFailure(watched, exit, kills());
      if (first !== 'gone' && first?.status === 200) break;
      if (first !== 'gone' && first?.status === 503) progress.answered = true;
      await Promise.race([new Promise((resolve) => setTimeout(resolve, pollMs)), interrupted, gone]);
      if (performance.now() - startedAtMs > OFTEN_FOR_MS) pollMs = Math.min(LAST_POLL_MS, pollMs * 1.25);
    }
    const servedAt = new Date().toISOString();
    const wrong = await Promise.race([dialect.wrongIdentity(state), gone.then(() => undefined)]);
    const exit = watched.isGone();
    if (exit) throw goneFailure(watched, exit, kills());
    if (wrong !== undefined) {
      throw fail('exited', `Port ${state.port} is answered, but not by this engine: ${wrong}.`);
    }
    const misplaced = dialect.wrongPlacement?.(state, watched.log());
    if (misplaced !== undefined)
      throw fail('incompatible-engine', `The engine is not where it was planned: ${misplaced}.`);
    watched.onProgress({ phase: 'warming', fraction: 1 });
    return {
      stagedAt: progress.stagedAt ?? state.startedAt,
      loadedAt: servedAt,
      ...(await dialect.times(state)),
    };
  } finally {
    clearInterval(timer);
  }
}

function goneFailure({ port, state, log }: Watched, exit: EngineExit, kills: number): LoadFailure {
  return port.wasTaken(log())
    ? new PortTaken(state.port, filterLoadTimeLines(log()))
    : exitFailure(exit, log(), kills);
}

/** Tells how much of the weights is in memory, and notices when nothing moves any more. */
class Progress {
  answered = false;
  loadedBytes = 0;
  stagedAt: string | undefined;
  onInterrupt: (why: 'stalled' | 'too-long') => void = () => undefined;
  readonly capMs: number;
  readonly totalBytes: number;
  #mostBytes = 0;
  // Not the clock of the wall: that one may be set while a load goes on.
  #movedAtMs = performance.now();
  readonly #startedAtMs = performance.now();
  #said = -1;

  constructor(private readonly watched: Watched) {
    this.totalBytes = totalFileBytes(watched.state.files);
    this.capMs = (watched.timing.longestLoadMs ?? longestLoadMs)(this.totalBytes);
    watched.onProgress({ phase: 'starting', fraction: 0 });
  }

  look(): void {
    const { state, timing, onProgress } = this.watched;
    this.loadedBytes = Math.min(this.totalBytes, readLoadedBytes(state.pid, state.files));
    // Steps of 1 MiB: an idle runtime's heap wobbles by less than a load moves.
    const bytes = this.loadedBytes + (readProcessMemory(state.pid).residentBytes ?? 0);
    const nowMs = performance.now();
    if (bytes >= this.#mostBytes + MIB) [this.#mostBytes, this.#movedAtMs] = [bytes, nowMs];
    if (nowMs - this.#movedAtMs > timing.stallMs) this.onInterrupt('stalled');
    if (nowMs - this.#startedAtMs > this.capMs) this.onInterrupt('too-long');
    if (!this.answered && this.loadedBytes === 0) return;
    this.stagedAt ??= new Date().toISOString();
    const fraction = this.totalBytes > 0 ? this.loadedBytes / this.totalBytes : 0;
    const percent = Math.floor(fraction * 100);
    if (percent === this.#said) return;
    this.#said = percent;
    onProgress({ phase: percent >= 100 ? 'warming' : 'reading', fraction: Math.min(fraction, 0.99) });
  }
}
