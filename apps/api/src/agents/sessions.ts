import type { Contract } from '#domain/placement-terms.js';
import { type ModelKey, residentId, type ResidentId, workerId, type WorkerId } from '#domain/ids.js';
import { newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentReadings, FromAgent, FromApi } from './messages.js';

/** Nothing heard for this long: the session is taken as dead. Agents beat every 5 s. */
const SILENCE_MS = 20_000;
const HEARTBEAT_MS = 5000;
/** An engine's oracle reads a file's header and prices a graph; beyond this it is taken as unable. */
export const PROJECTION_TIMEOUT_MS = 45_000;

/** One agent's stream, as the transport gives it. */
export interface AgentStream {
  send(message: FromApi): void;
  end(): void;
}

export interface LoadProgress {
  readonly phase: string;
  readonly fraction: number;
  readonly elapsedSeconds: number;
}

export type Projected =
  { readonly ok: true; readonly revision: number } | { readonly ok: false; readonly reason: string };

export interface SessionListener {
  onConnected?(worker: WorkerId): void;
  onDisconnected?(worker: WorkerId): void;
  onProgress?(resident: ResidentId): void;
  onDrainAsked?(worker: WorkerId, resident: ResidentId): void;
  /** How many apis have a line to the worker's agent. */
  onNeighbours?(worker: WorkerId, apis: number): void;
  onShare?(worker: WorkerId, share: NonNullable<FromAgent['share']>): void;
}

interface Session {
  readonly workerId: WorkerId;
  readonly bootId: string;
  readonly stream: AgentStream;
  heardAtMs: number;
}

/** The agents that are connected now, and what they said that is no event. */
export class AgentSessions {
  readonly #apiId: string;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #sessions = new Map<WorkerId, Session>();
  /** Agents that were here and are away. */
  readonly #away = new Map<WorkerId, { readonly sinceMs: number; readonly heardAtMs: number }>();
  readonly #progress = new Map<ResidentId, LoadProgress>();
  readonly #readings = new Map<WorkerId, AgentReadings>();
  readonly #projections = new Map<string, { worker: WorkerId; settle: (outcome: Projected) => void }>();
  readonly #listeners = new Set<SessionListener>();
  readonly #beat: NodeJS.Timeout;
  readonly #startedAtMs: number;

  constructor(options: { apiId: string; log: Logger; now: () => number }) {
    this.#apiId = options.apiId;
    this.#log = options.log;
    this.#now = options.now;
    this.#startedAtMs = options.now();
    this.#beat = setInterval(() => this.#keepAlive(), HEARTBEAT_MS);
    this.#beat.unref();
  }

  listen(listener: SessionListener): void {
    this.#listeners.add(listener);
  }

  /** A new stream: its first message must be a hello. @returns what to call with each message, and at its end. */
  open(stream: AgentStream): { receive: (message: FromAgent) => void; closed: () => void } {
    let session: Session | undefined;
    return {
      receive: (message) => {
        if (!session) {
          if (!message.hello) {
            stream.end();
            return;
          }
          session = this.#welcome(message.hello, stream);
          return;
        }
        session.heardAtMs = this.#now();
        this.#receive(session, message);
      },
      closed: () => {
        if (session) this.#drop(session, 'the agent ended the session');
      },
    };
  }

  isConnected(worker: WorkerId): boolean {
    return this.#sessions.has(worker);
  }

  /** Since when an agent has been away, ms; from our own start when it was never here. */
  awaySinceMs(worker: WorkerId): number | undefined {
    return this.#sessions.has(worker) ? undefined : (this.#away.get(worker)?.sinceMs ?? this.#startedAtMs);
  }

  /** When something was last heard of an agent that is away, ms; undefined when it was never here. */
  lastHeardMs(worker: WorkerId): number | undefined {
    return this.#sessions.get(worker)?.heardAtMs ?? this.#away.get(worker)?.heardAtMs;
  }

  /** Boot of the machine whose agent is connected. */
  bootIdOf(worker: WorkerId): string | undefined {
    return this.#sessions.get(worker)?.bootId;
  }

  get connected(): readonly WorkerId[] {
    return [...this.#sessions.keys()];
  }

  progressOf(resident: ResidentId): LoadProgress | undefined {
    return this.#progress.get(resident);
  }

  readingsOf(worker: WorkerId): AgentReadings | undefined {
    return this.#readings.get(worker);
  }

  forget(resident: ResidentId): void {
    this.#progress.delete(resident);
  }

  /** False when the agent is not connected; it is told again when it is back. */
  sayDrained(worker: WorkerId, resident: ResidentId, sinceRevision: number): boolean {
    const session = this.#sessions.get(worker);
    session?.stream.send({ drained: { residentId: resident, sinceRevision } });
    return session !== undefined;
  }

  /** Dropped when the agent is not connected; it is told again when it is back. */
  sayServing(worker: WorkerId, resident: ResidentId, serves: boolean): void {
    this.#sessions.get(worker)?.stream.send({ serving: { residentId: resident, serves } });
  }

  saySlots(worker: WorkerId, slots: NonNullable<FromApi['slots']>): void {
    this.#sessions.get(worker)?.stream.send({ slots });
  }

  /** Has the worker's engine say what a plan takes. The figures come through the log, at the revision given. */
  project(worker: WorkerId, key: ModelKey, artifact: string, contract: Contract): Promise<Projected> {
    const session = this.#sessions.get(worker);
    if (!session) return Promise.resolve({ ok: false, reason: 'the agent is not connected' });
    const requestId = newId();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        settle({ ok: false, reason: `the engine said nothing for ${PROJECTION_TIMEOUT_MS / 1000} s` });
      }, PROJECTION_TIMEOUT_MS);
      const settle = (outcome: Projected) => {
        clearTimeout(timer);
        this.#projections.delete(requestId);
        resolve(outcome);
      };
      this.#projections.set(requestId, { worker, settle });
      session.stream.send({
        project: { requestId, modelKey: key, artifact, contractJson: JSON.stringify(contract) },
      });
    });
  }

  close(): void {
    clearInterval(this.#beat);
    for (const session of [...this.#sessions.values()]) {
      session.stream.end();
      this.#drop(session, 'the api stops');
    }
  }

  #welcome(hello: NonNullable<FromAgent['hello']>, stream: AgentStream): Session {
    const id = workerId(hello.workerId);
    const before = this.#sessions.get(id);
    if (before) {
      before.stream.end();
      this.#drop(before, 'the same worker dialled again');
    }
    const session: Session = { workerId: id, bootId: hello.bootId, stream, heardAtMs: this.#now() };
    this.#sessions.set(id, session);
    this.#away.delete(id);
    stream.send({ welcome: { apiId: this.#apiId } });
    this.#log.info({ worker: hello.name, workerId: id }, 'agent connected');
    for (const l of this.#listeners) l.onConnected?.(id);
    return session;
  }

  #receive(session: Session, message: FromAgent): void {
    if (message.progress) {
      const { residentId: id, phase, fraction, elapsedSeconds } = message.progress;
      const known = residentId(id);
      this.#progress.set(known, { phase, fraction: fraction ?? 0, elapsedSeconds: elapsedSeconds ?? 0 });
      for (const l of this.#listeners) l.onProgress?.(known);
    } else if (message.projected) {
      const { requestId, ok, error, revision } = message.projected;
      const outcome: Projected =
        ok === true ? { ok: true, revision: revision ?? 0 } : { ok: false, reason: error ?? 'it cannot say' };
      this.#projections.get(requestId)?.settle(outcome);
    } else if (message.readings) {
      this.#readings.set(session.workerId, message.readings);
    } else if (message.drainAsked) {
      const asked = residentId(message.drainAsked.residentId);
      for (const l of this.#listeners) l.onDrainAsked?.(session.workerId, asked);
    } else if (message.neighbours) {
      for (const l of this.#listeners) l.onNeighbours?.(session.workerId, message.neighbours.apis ?? 0);
    } else if (message.share) {
      for (const l of this.#listeners) l.onShare?.(session.workerId, message.share);
    }
  }

  #keepAlive(): void {
    const now = this.#now();
    for (const session of [...this.#sessions.values()]) {
      if (now - session.heardAtMs > SILENCE_MS) {
        session.stream.end();
        this.#drop(session, `nothing was heard for ${SILENCE_MS / 1000} s`);
      } else {
        session.stream.send({ heartbeat: { at: new Date(now).toISOString() } });
      }
    }
  }

  #drop(session: Session, why: string): void {
    if (this.#sessions.get(session.workerId) !== session) return;
    this.#sessions.delete(session.workerId);
    this.#readings.delete(session.workerId);
    this.#away.set(session.workerId, { sinceMs: this.#now(), heardAtMs: session.heardAtMs });
    for (const { worker, settle } of [...this.#projections.values()]) {
      if (worker === session.workerId) settle({ ok: false, reason: 'the agent left before it answered' });
    }
    this.#log.warn({ workerId: session.workerId, why }, 'agent disconnected');
    for (const l of this.#listeners) l.onDisconnected?.(session.workerId);
  }
}
