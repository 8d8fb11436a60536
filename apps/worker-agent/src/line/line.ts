import type { FleetState, KnownApi } from '#domain/fleet/fleet.js';
import type { ApiId, ResidentId } from '#domain/ids.js';
import { SlotShares } from '#domain/worker/slot-shares.js';
import { bootId, isAlive } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import type { FromAgent, FromApi } from './messages.js';
import { LineSession, type SessionHandlers } from './session.js';

interface ApiLine {
  readonly api: KnownApi;
  readonly session: LineSession;
  /** By resident: the revision since which it leaves and this api has nothing on it. */
  readonly drained: Map<ResidentId, number>;
  /** Residents that this api has calls on. */
  readonly serving: Set<ResidentId>;
  /** Since when there is no connection, ms; undefined while connected. */
  awaySinceMs: number | undefined;
}

/** An api that cannot be reached for this long no longer holds an eviction up: its calls are guarded by the engine's own count. */
const AWAY_MS = 10_000;

export interface AgentLineOptions {
  readonly token: string;
  readonly hello: SessionHandlers['hello'];
  readonly onProject: (
    request: NonNullable<FromApi['project']>,
  ) => Promise<NonNullable<FromAgent['projected']>>;
  readonly log: Logger;
}

/** The agent's lines to all apis of the fleet: one session each, dialled from the log's own list. */
export class AgentLine {
  readonly #lines = new Map<ApiId, ApiLine>();
  readonly #waiters = new Set<() => void>();
  readonly #options: AgentLineOptions;
  readonly #shares = new SlotShares((api, share) => this.#lines.get(api)?.session.send({ share }));
  readonly #tick: NodeJS.Timeout;

  constructor(options: AgentLineOptions) {
    this.#options = options;
    // Being away becomes "no longer waited for" by the passing of time alone.
    this.#tick = setInterval(() => this.#wake(), 1000);
    this.#tick.unref();
  }

  /** Dials apis that are new in the fold and hangs up on those that left it. */
  follow(fleet: FleetState): void {
    for (const [id, line] of this.#lines) {
      if (fleet.apis.has(id)) continue;
      line.session.close();
      this.#lines.delete(id);
      this.#neighboursChanged(id);
    }
    for (const api of fleet.apis.values()) {
      if (this.#lines.has(api.apiId) || isGone(api)) continue;
      const drained = new Map<ResidentId, number>();
      const serving = new Set<ResidentId>();
      const line: ApiLine = {
        api,
        drained,
        serving,
        awaySinceMs: performance.now(),
        session: new LineSession(
          api.agentLine,
          this.#options.token,
          {
            hello: this.#options.hello,
            onMessage: (message) => this.#receive(api.apiId, message),
            onConnected: (connected) => {
              line.awaySinceMs = connected ? undefined : performance.now();
              // What an api said before it was away is said again when it is back.
              if (!connected) {
                drained.clear();
                serving.clear();
              }
              this.#neighboursChanged(connected ? undefined : api.apiId);
              this.#wake();
            },
          },
          this.#options.log,
        ),
      };
      this.#lines.set(api.apiId, line);
    }
    this.#wake();
  }

  broadcast(message: FromAgent): void {
    for (const line of this.#lines.values()) line.session.send(message);
  }

  get connectedApis(): number {
    return [...this.#lines.values()].filter((line) => line.session.connected).length;
  }

  /** Whether every api that could send calls has said that it sends none to the resident any more. */
  isDrained(id: ResidentId, sinceRevision: number): boolean {
    return this.waitingFor(id, sinceRevision).length === 0;
  }

  /** Whether an api has calls on a resident, as they last said; undefined when none is connected. */
  isServing(id: ResidentId): boolean | undefined {
    const connected = [...this.#lines.values()].filter((line) => line.session.connected);
    return connected.length === 0 ? undefined : connected.some((line) => line.serving.has(id));
  }

  /** The apis that have not yet said so. */
  waitingFor(id: ResidentId, sinceRevision: number): readonly ApiId[] {
    return [...this.#lines.values()]
      .filter((line) => (line.drained.get(id) ?? -1) < sinceRevision && !isGone(line.api))
      .filter((line) => line.awaySinceMs === undefined || performance.now() - line.awaySinceMs < AWAY_MS)
      .map((line) => line.api.apiId);
  }

  /** Calls back whenever a drain may have moved on; returns the way to stop. */
  onChange(callback: () => void): () => void {
    this.#waiters.add(callback);
    return () => this.#waiters.delete(callback);
  }

  close(): void {
    clearInterval(this.#tick);
    for (const line of this.#lines.values()) line.session.close();
    this.#lines.clear();
  }

  /** Slots are shared out while more than one api sends calls; what one that left held is the others'. */
  #neighboursChanged(left: ApiId | undefined): void {
    if (left !== undefined) this.#shares.left(left);
    this.broadcast({ neighbours: { apis: this.connectedApis } });
  }

  #receive(id: ApiId, message: FromApi): void {
    const line = this.#lines.get(id);
    if (!line) return;
    if (message.drained) {
      // A field that is 0 is left out on the wire.
      line.drained.set(message.drained.residentId as ResidentId, message.drained.sinceRevision ?? 0);
      this.#wake();
    } else if (message.serving) {
      const { residentId, serves } = message.serving;
      if (serves === true) line.serving.add(residentId as ResidentId);
      else line.serving.delete(residentId as ResidentId);
    } else if (message.slots) {
      this.#shares.said(id, message.slots);
    } else if (message.project) {
      const { project } = message;
      void this.#options
        .onProject(project)
        .catch((error: unknown) => ({
          requestId: project.requestId,
          ok: false,
          error: error instanceof Error ? error.message : String(error),
          revision: -1,
        }))
        .then((projected) => line.session.send({ projected }));
    }
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
  }
}

/** Known dead: same machine, and its process is no longer there. An api on another machine is never known dead from here. */
const isGone = (api: KnownApi): boolean => api.bootId === bootId() && !isAlive(api.pid, api.pidStartTicks);
