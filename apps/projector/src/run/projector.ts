import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { BackOff } from '#events/back-off.js';
import type { EventLog } from '#events/event-log.js';
import { type CatchUp, runCatchUp } from '#events/runner/catch-up.js';
import type { CatchUpSink } from '#events/runner/sink.js';
import { MigrationMismatch } from '#schema/migrate.js';
import { PREFIXES } from '../handlers/index.js';
import { ViewsSink } from './views-sink.js';

export interface ProjectorLog {
  readonly info: (fields: object, message: string) => void;
  readonly warn: (fields: object, message: string) => void;
  readonly error: (fields: object, message: string) => void;
}

export interface ProjectorOptions {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly events: EventLog;
  readonly log: ProjectorLog;
  readonly batchEvents?: number;
  readonly backOff?: BackOff;
}

/** Beyond this a live batch waits for company; far below what a person notices. */
const LIVE_LINGER_MS = 15;

/**
 * Keeps the views up with the log for as long as it runs. One is active per database, others wait and take over. When
 * Postgres or the log go away it goes on from the checkpoint when they are back, for as long as that takes.
 */
export class Projector {
  readonly #options: ProjectorOptions;
  readonly #sink: ViewsSink;
  #catchUp: CatchUp | undefined;
  #nowFollowing!: () => void;
  #nowStandby!: () => void;
  #refuse!: (error: MigrationMismatch) => void;
  /** Fulfilled the first time that it is the active one. */
  readonly following = new Promise<void>((resolve) => (this.#nowFollowing = resolve));
  /** Fulfilled the first time that it must wait for another one. */
  readonly standby = new Promise<void>((resolve) => (this.#nowStandby = resolve));
  /** Rejects when a person must mend something first. */
  readonly #refused = new Promise<never>((_resolve, reject) => (this.#refuse = reject));

  constructor(options: ProjectorOptions) {
    this.#options = options;
    const { databaseUrl, schema, log } = options;
    this.#sink = new ViewsSink({
      databaseUrl,
      schema,
      onMigrated: (names) => log.info({ names }, 'The views were migrated.'),
      onActive: () => this.#nowFollowing(),
      onStandby: () => {
        log.info({}, 'Another projector is active; this one waits to take over.');
        this.#nowStandby();
      },
      onSetAside: (recorded, error) => this.#saySetAside(recorded, error),
    });
    this.#refused.catch(() => undefined);
  }

  /** Settles after `stop`; rejects when a person must mend something first. Call once. */
  async run(): Promise<void> {
    const { events, log, batchEvents, backOff } = this.#options;
    let folded = 0;
    let saidLive = false;
    const catchUp = runCatchUp({
      log: events,
      name: 'views',
      prefixes: PREFIXES,
      sink: this.#refusingMismatch(),
      liveLingerMs: LIVE_LINGER_MS,
      warn: (message) => log.warn({}, message),
      onConnected: (connected) =>
        connected
          ? log.info({}, 'The event log is followed.')
          : log.warn({}, 'The event log is out of reach; the views stay as they are until it is back.'),
      onProgress: (progress) => {
        folded += progress.events;
        if (progress.live && !saidLive) log.info({ events: folded }, 'The views are up with the event log.');
        saidLive = progress.live;
      },
      ...(batchEvents === undefined ? {} : { batchEvents }),
      ...(backOff === undefined ? {} : { backOff }),
    });
    this.#catchUp = catchUp;
    await Promise.race([catchUp.ended, this.#refused]);
  }

  async stop(): Promise<void> {
    this.#sink.stopWaiting();
    await this.#catchUp?.stop();
    await this.#sink.close();
  }

  /** Trying again does not help against views of another version. */
  #refusingMismatch(): CatchUpSink {
    const sink = this.#sink;
    return {
      begin: async () => {
        try {
          return await sink.begin();
        } catch (error) {
          if (error instanceof MigrationMismatch) this.#refuse(error);
          throw error;
        }
      },
      reset: (logId) => sink.reset(logId),
      commit: (batch, position) => sink.commit(batch, position),
    };
  }

  #saySetAside(recorded: Recorded<BerthEvent>, error: Error): void {
    this.#options.log.error(
      {
        eventId: recorded.id,
        stream: recorded.stream,
        revision: recorded.revision,
        type: recorded.event.type,
      },
      `No view could take this event; it is kept in set_aside_events and the rest goes on: ${error.message}`,
    );
  }
}
