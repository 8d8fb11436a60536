import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BerthFailure, berthError } from '#domain/errors.js';
import type { BerthEvent, IdentityEvent, LogPosition, Recorded } from '#domain/events/index.js';
import { AppendChannel } from './append-channel.js';
import {
  Decoder,
  type EncodedEvent,
  encodeEvent,
  eventText,
  type EventText,
  refusalOf,
  type Writer,
} from './codec.js';
import { withEncodedAppends } from './encoded-appends.js';
import type {
  AllOptions,
  AllSubscriber,
  AppendOutcome,
  EventLog,
  ExpectedRevision,
  NewEvent,
  StreamSubscriber,
  Subscription,
} from './event-log.js';
import { guardedRead } from './guarded-read.js';
import { LogClient } from './log-client.js';
import { refused, unavailable } from './log-failures.js';
import { ResumingSubscription, type Surroundings } from './resuming-subscription.js';
import { streams } from './streams.js';

export interface EventLogOptions {
  /** `esdb://…` of a server, a cluster or the embedded node. */
  readonly url: string;
  /** Who writes: `api:<apiId>`, `agent:<workerId>`, `cli`. */
  readonly by: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log?: {
    readonly warn: (message: string) => void;
    readonly info: (message: string) => void;
    readonly error: (message: string) => void;
  };
}

const APPEND_DEADLINE_MS = 5000;
/** Events considered between two checkpoints of a filtered subscription: window × multiplier. */
const SEARCH_WINDOW = 256;
const CHECKPOINT_MULTIPLIER = 4;
const READ_AHEAD = { highWaterMark: 256 };
const LEADER = { requiresLeader: true };

/**
 * Opens the event log; one per process. Nothing is dialled before the first use, and a log that is out of reach is
 * waited for, so this never fails for want of a server.
 * @throws when the address is malformed or names a file that is not there.
 */
export function openEventLog(options: EventLogOptions): EventLog {
  const log = new ClientEventLog(options);
  withEncodedAppends(log, {
    text: (event) => log.text(event),
    appendEncoded: (stream, events, expected, deadlineMs) =>
      log.appendEncoded(stream, events, expected, deadlineMs),
  });
  return log;
}

type Followed = Subscription & { readonly name: string; readonly isStanding: boolean };

class ClientEventLog implements EventLog {
  readonly #client: LogClient;
  readonly #appends: AppendChannel;
  readonly #writer: Writer;
  readonly #around: Surroundings;
  readonly #subscriptions = new Set<Followed>();
  #begun: Promise<undefined> | undefined;
  #hasBegun = false;
  #closed = false;

  constructor(options: EventLogOptions) {
    const warn = (message: string): void => options.log?.warn(message);
    this.#client = LogClient.open(options.url);
    this.#appends = new AppendChannel(this.#client);
    this.#writer = { by: options.by, now: options.now };
    this.#around = { decoder: new Decoder(warn), identity: () => this.identity(), warn };
  }

  async identity(): Promise<string> {
    const found = await this.#readIdentity();
    if (found !== undefined) return found;
    const created = this.#now();
    const logId = randomUUID();
    const event: NewEvent<IdentityEvent> = {
      id: logId,
      event: { type: 'LogCreated', data: { logId, createdAt: created } },
      cause: { correlationId: logId, causationId: logId },
      at: created,
    };
    const outcome = await this.#appends.append(
      streams.identity,
      [this.encode(event)],
      'no-stream',
      APPEND_DEADLINE_MS,
    );
    if (outcome.ok) return logId;
    // Somebody else was first, or the answer was lost on its way: the log knows.
    const winner = await this.#readIdentity();
    if (winner !== undefined) return winner;
    const why =
      outcome.error.kind === 'conflict' ? 'its first event cannot be read back' : outcome.error.message;
    throw new BerthFailure(
      berthError('event_log_unavailable', `The event log has no identity yet: ${why}`, {
        retryAfterSeconds: 2,
      }),
    );
  }

  async append<E extends BerthEvent>(
    stream: string,
    events: readonly NewEvent<E>[],
    expected: ExpectedRevision,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<AppendOutcome> {
    return this.appendEncoded(
      stream,
      events.map((event) => this.encode(event)),
      expected,
      options.deadlineMs,
    );
  }

  text(event: NewEvent): EventText {
    return eventText(event, this.#writer);
  }

  encode(event: NewEvent): EncodedEvent {
    return encodeEvent(event, this.#writer);
  }

  async appendEncoded(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
    deadlineMs = APPEND_DEADLINE_MS,
  ): Promise<AppendOutcome> {
    if (this.#closed)
      return { ok: false, error: unavailable('This process has closed its connection to the event log.') };
    const refusal = refusalOf(events);
    if (refusal !== undefined) return { ok: false, error: refused(refusal) };
    if (this.#hasBegun) return this.#appends.append(stream, events, expected, deadlineMs);
    const until = performance.now() + deadlineMs;
    const failure = await this.#begin(deadlineMs);
    if (failure !== undefined) return { ok: false, error: unavailable(failure) };
    return this.#appends.append(stream, events, expected, Math.max(1, until - performance.now()));
  }

  async *readForwards<E extends BerthEvent>(
    stream: string,
    options: { readonly fromRevision?: number; readonly maxCount?: number } = {},
  ): AsyncGenerator<Recorded<E>, void, undefined> {
    const { fromRevision = 0, maxCount } = options;
    if (maxCount !== undefined && maxCount <= 0) return;
    const read = guardedRead(stream, () =>
      this.#client.touch().readStream(
        stream,
        {
          ...LEADER,
          direction: 'forwards',
          fromRevision: fromRevision <= 0 ? 'start' : BigInt(fromRevision),
          ...(maxCount === undefined ? {} : { maxCount }),
        },
        READ_AHEAD,
      ),
    );
    for await (const { event } of read) {
      const recorded = event && this.#around.decoder.decode<E>(event);
      if (recorded) yield recorded;
    }
  }

  async readBackwards<E extends BerthEvent>(
    stream: string,
    maxCount: number,
  ): Promise<readonly Recorded<E>[]> {
    const found: Recorded<E>[] = [];
    if (maxCount <= 0) return found;
    const read = guardedRead(stream, () =>
      this.#client
        .touch()
        .readStream(stream, { ...LEADER, direction: 'backwards', fromRevision: 'end', maxCount }, READ_AHEAD),
    );
    for await (const { event } of read) {
      const recorded = event && this.#around.decoder.decode<E>(event);
      if (recorded) found.push(recorded);
    }
    return found;
  }

  async fold<S, E extends BerthEvent>(
    stream: string,
    initial: S,
    evolve: (state: S, recorded: Recorded<E>) => S,
  ): Promise<S> {
    let state = initial;
    for await (const recorded of this.readForwards<E>(stream)) state = evolve(state, recorded);
    return state;
  }

  subscribe<E extends BerthEvent>(
    stream: string,
    subscriber: StreamSubscriber<E>,
    options: { readonly afterRevision?: number } = {},
  ): Subscription {
    const { afterRevision } = options;
    return this.#keep(
      stream,
      () =>
        new ResumingSubscription<bigint, E>(
          {
            name: stream,
            open: (after) =>
              this.#client.touch().subscribeToStream(stream, { fromRevision: after ?? 'start' }, READ_AHEAD),
            cursorOf: (raw) => raw.revision,
          },
          subscriber,
          this.#around,
          afterRevision === undefined || afterRevision < 0 ? undefined : BigInt(afterRevision),
        ),
    );
  }

  subscribeAll(
    prefixes: readonly string[],
    subscriber: AllSubscriber,
    { after: from, once = false }: AllOptions = {},
  ): Subscription {
    const names = prefixes.length > 0 ? { prefixes: [...prefixes] } : { regex: '^[^$]' };
    const what = prefixes.length > 0 ? `streams ${prefixes.join(', ')}` : 'the whole log';
    const name = once ? `${what}, once` : what;
    return this.#keep(
      name,
      () =>
        new ResumingSubscription<LogPosition, BerthEvent>(
          {
            name,
            open: (after, onCheckpoint) =>
              this.#client.touch().subscribeToAll(
                {
                  fromPosition: after ? { ...after } : 'start',
                  filter: {
                    ...names,
                    filterOn: 'streamName',
                    maxSearchWindow: SEARCH_WINDOW,
                    checkpointInterval: CHECKPOINT_MULTIPLIER,
                    checkpointReached: (_subscription, position) => onCheckpoint(position),
                  },
                },
                READ_AHEAD,
              ),
            cursorOf: (raw) => raw.position ?? { commit: 0n, prepare: 0n },
            cursorAt: (position) => position,
          },
          subscriber,
          this.#around,
          from,
        ),
      once,
    );
  }

  async keepFor(stream: string, seconds: number): Promise<AppendOutcome> {
    const bounds: EncodedEvent = {
      id: randomUUID(),
      type: '$metadata',
      data: Buffer.from(JSON.stringify({ $maxAge: seconds })),
      metadata: Buffer.from('{}'),
    };
    const outcome = await this.appendEncoded(`$$${stream}`, [bounds], 'no-stream');
    if (outcome.ok || outcome.error.kind !== 'conflict') return outcome;
    const position = { commit: 0n, prepare: 0n };
    return { ok: true, value: { revision: outcome.error.actual, position } };
  }

  async endPosition(): Promise<LogPosition | undefined> {
    const read = guardedRead('the end of the log', () =>
      this.#client.touch().readAll({ ...LEADER, direction: 'backwards', fromPosition: 'end', maxCount: 1 }),
    );
    for await (const { event } of read) {
      if (event) return event.position;
    }
    return undefined;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop()));
    // Cancelled calls leave in the next turn of the loop; only then may the connection go.
    await nextTurn();
    await this.#client.shutDown();
  }

  /** One standing subscription per process and purpose: each open call counts against the connection's hundred. */
  #keep(name: string, open: () => Followed, once = false): Subscription {
    for (const other of this.#subscriptions) {
      if (!once && other.name === name && other.isStanding)
        throw new Error(`This process follows ${name} already; hand the events on from that subscription.`);
    }
    const subscription = open();
    this.#subscriptions.add(subscription);
    const forget = () => this.#subscriptions.delete(subscription);
    subscription.ended.then(forget, forget);
    return subscription;
  }

  /** Before the first append of this process the log has an identity: its first event. */
  async #begin(deadlineMs: number): Promise<string | undefined> {
    this.#begun ??= this.identity().then(
      () => {
        this.#hasBegun = true;
        return undefined;
      },
      (error: unknown) => {
        this.#begun = undefined;
        throw error;
      },
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(
        () => resolve(`The event log did not answer within ${Math.round(deadlineMs)} ms.`),
        deadlineMs,
      );
    });
    try {
      return await Promise.race([this.#begun, late]);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #readIdentity(): Promise<string | undefined> {
    for await (const { event } of this.readForwards<IdentityEvent>(streams.identity, { maxCount: 1 })) {
      return event.data.logId;
    }
    return undefined;
  }

  #now(): string {
    return new Date(this.#writer.now()).toISOString();
  }
}
