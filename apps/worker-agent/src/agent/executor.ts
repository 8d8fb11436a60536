import type { CloseReason, DeviceRoom, WorkerEvent } from '#domain/events/worker-events.js';
import type { Recorded } from '#domain/events/envelope.js';
import type { ResidentId, WorkerId } from '#domain/ids.js';
import type { OpenDecision, Resident, WorkerState } from '#domain/worker/state.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import { formatBytes } from '#domain/units.js';
import { derivedId, newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { EngineExit, RunningEngine } from '../ports.js';
import type { CoreBinder } from './bind.js';
import type { RunningEngines } from './engines.js';
import type { Evictor } from './evict.js';
import type { FactWriter, Why } from './facts.js';
import type { InstalledEngines } from './installed-engines.js';
import { whyOf, whyOfResident, type Loader } from './load.js';
import { needByDevice, needWithShared, readRoom, tooSmall } from './room.js';

export interface ExecutorOptions {
  readonly workerId: WorkerId;
  readonly engines: RunningEngines;
  readonly evictor: Evictor;
  readonly loader: Loader;
  readonly facts: FactWriter;
  readonly binder: CoreBinder;
  readonly log: Logger;
  readonly installed: Pick<InstalledEngines, 'now'>;
  /** Whether an api has calls on it; undefined when none can say. */
  readonly isServing: (id: ResidentId) => boolean | undefined;
  /** Where its fold goes on from: a snapshot. */
  readonly state?: WorkerState;
}

/** How long calls under way may hold an eviction up. */
const DRAIN_DEADLINE_MS = 600_000;
const SHUTDOWN_DRAIN_MS = 5000;

/**
 * Acts on what the log says, and on nothing else. Each event folded makes it look at the whole state again: an open
 * decision without a task gets one, an eviction begun without an end is finished. So a restart needs no path of its own.
 */
export class Executor {
  #state: WorkerState;
  #live = false;
  #stopping = false;
  readonly #tasks = new Map<string, Promise<void>>();
  readonly #watchers = new Set<() => void>();
  /** Why evictions failed last, in words, for whoever asked for them. */
  readonly #failures = new Map<ResidentId, string>();
  readonly #o: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#o = options;
    this.#state = options.state ?? initialWorker(options.workerId);
  }

  get state(): WorkerState {
    return this.#state;
  }

  fold(recorded: Recorded<WorkerEvent>): void {
    this.#state = evolveWorker(this.#state, recorded);
    const { event } = recorded;
    if (event.type === 'EvictionFailed') this.#failures.set(event.data.residentId, event.data.message);
    for (const watcher of [...this.#watchers]) watcher();
    if (this.#live) this.#reconcile();
  }

  /** Called once the past is folded and running engines are adopted: from here on decisions are acted on. */
  goLive(): void {
    this.#live = true;
    this.#reconcile();
  }

  /** An engine went without having been told to. */
  async crashed(id: ResidentId, exit: EngineExit): Promise<void> {
    const resident = this.#state.residents.get(id);
    if (!resident || this.#stopping || !this.#o.engines.claimEnd(id)) return;
    await this.#o.facts.worker(
      derivedId('ResidentCrashed', id),
      {
        type: 'ResidentCrashed',
        data: {
          residentId: id,
          during: this.#duringOf(resident),
          logTail: '',
          ...(exit.code === undefined ? {} : { exitCode: exit.code }),
          ...(exit.signal === undefined ? {} : { signal: exit.signal }),
          ...(exit.unansweredSeconds === undefined ? {} : { unansweredSeconds: exit.unansweredSeconds }),
        },
      },
      whyOfResident(resident, resident.decisionId),
    );
  }

  /** Engines that calls may be on. */
  serving(): readonly RunningEngine[] {
    return this.#o.engines
      .all()
      .filter(({ residentId }) => this.#state.residents.get(residentId)?.phase === 'ready');
  }

  /** What it was doing when it went, as the log and the apis say. */
  #duringOf({ residentId, phase }: Resident): 'loading' | 'call' | 'idle' | 'unknown' {
    if (phase !== 'ready') return 'loading';
    const serves = this.#o.isServing(residentId);
    return serves === undefined ? 'unknown' : serves ? 'call' : 'idle';
  }

  /**
   * Residents whose weight files are not those that they were loaded from: a new call would be answered by the old
   * file, or by one that nobody has any more. They are drained as for any eviction: calls under way end first.
   */
  evictReplaced(): void {
    if (!this.#live || this.#stopping) return;
    for (const resident of this.#state.residents.values()) {
      if (resident.phase !== 'ready' || resident.leaving) continue;
      const now = this.#o.engines.get(resident.residentId)?.filesNow();
      if (now === undefined || now === 'as-loaded') continue;
      this.#task(`evict ${resident.residentId}`, async () => {
        this.#o.log.warn(
          { residentId: resident.residentId, modelKey: resident.modelKey },
          `its weight file on disk is ${now}: it is unloaded once its calls have ended`,
        );
        await this.#o.evictor.evict(resident, {
          reason: 'artifact',
          why: whyOfResident(resident, newId()),
          deadlineMs: DRAIN_DEADLINE_MS,
        });
        await this.#until(() => {
          const standing = this.#state.residents.get(resident.residentId);
          return standing === undefined || standing.leaving === undefined;
        });
      });
    }
  }

  /**
   * For an operator: drained as for any eviction; one that leaves already is waited for.
   * @returns why it stays, in a sentence; undefined when it is gone.
   */
  async evict(id: ResidentId, why: Why): Promise<string | undefined> {
    const resident = this.#state.residents.get(id);
    if (!resident) return undefined;
    if (resident.phase !== 'ready')
      return `${resident.modelKey} is still loading, and what loads is never stopped. Evict it once it is ready.`;
    this.#failures.delete(id);
    const settled = (): boolean => {
      const standing = this.#state.residents.get(id);
      return standing === undefined || (begun && standing.leaving === undefined);
    };
    let begun = resident.leaving !== undefined;
    if (!begun) {
      this.#task(`evict ${id}`, async () => {
        await this.#o.evictor.evict(resident, { reason: 'operator', why, deadlineMs: DRAIN_DEADLINE_MS });
      });
      await this.#until(() => this.#state.residents.get(id)?.phase !== 'ready' || this.#leaves(id));
      begun = true;
    }
    await this.#until(settled);
    if (!this.#state.residents.has(id)) return undefined;
    return this.#failures.get(id) ?? `${resident.modelKey} was let stay.`;
  }

  #leaves(id: ResidentId): boolean {
    return this.#state.residents.get(id)?.leaving !== undefined;
  }

  /**
   * Ends everything that this agent runs: loads are cancelled, residents drained shortly and stopped. No engine is left
   * behind, whether or not the log takes the facts: what it did not take, the next agent finds gone.
   */
  async shutDown(): Promise<void> {
    this.#stopping = true;
    this.#o.evictor.hurry(SHUTDOWN_DRAIN_MS);
    for (const resident of this.#state.residents.values()) this.#o.loader.cancel(resident.residentId);
    const shutdownId = newId();
    try {
      await Promise.allSettled(this.#tasks.values());
      for (const decision of this.#state.openDecisions.values()) {
        if (this.#state.residents.get(decision.residentId)?.phase !== 'planned') continue;
        await this.#close(decision, 'cancelled', 'The agent was shut down before the load began.');
      }
      await Promise.all(
        [...this.#state.residents.values()]
          .filter((resident) => resident.phase === 'ready')
          .map((resident) =>
            this.#o.evictor.evict(resident, {
              reason: 'shutdown',
              why: whyOfResident(resident, shutdownId),
              deadlineMs: SHUTDOWN_DRAIN_MS,
            }),
          ),
      );
    } catch (error) {
      this.#o.log.warn(
        { reason: String(error) },
        'the log could not be told of every end; the next agent will',
      );
    } finally {
      await Promise.all(this.#o.engines.all().map((engine) => this.#o.engines.stop(engine.residentId)));
    }
  }

  #reconcile(): void {
    if (this.#stopping) return;
    this.#o.binder.follow(this.#state);
    for (const decision of this.#state.openDecisions.values()) {
      this.#task(`place ${decision.decisionId}`, () => this.#place(decision));
    }
    for (const resident of this.#state.residents.values()) {
      const { leaving } = resident;
      if (leaving === undefined) continue;
      // The task of the placement that it makes room for does it; this is for the idle, and for one whose placement is gone.
      if (leaving.by !== undefined && this.#state.openDecisions.has(leaving.by)) continue;
      this.#task(`evict ${resident.residentId}`, async () => {
        await this.#o.evictor.evict(resident, {
          reason: leaving.reason,
          why: whyOfResident(resident, leaving.by ?? resident.decisionId),
          deadlineMs: DRAIN_DEADLINE_MS,
          ...(leaving.by === undefined ? {} : { decisionId: leaving.by }),
        });
      });
    }
  }

  #task(name: string, run: () => Promise<void>): void {
    if (this.#tasks.has(name)) return;
    const task = run()
      .catch((error: unknown) => {
        this.#o.log.error({ err: error, task: name }, 'a task of the agent failed');
      })
      .finally(() => {
        this.#tasks.delete(name);
      });
    this.#tasks.set(name, task);
  }

  async #place(decision: OpenDecision): Promise<void> {
    const { data } = decision;
    const why = whyOf(decision);
    const resident = this.#state.residents.get(decision.residentId);
    // A load that is under way is finished by whoever began or adopted it.
    if (resident?.phase !== 'planned' || this.#o.loader.isLoading(decision.residentId)) return;
    if (Date.parse(data.validUntil) < Date.now()) {
      return this.#close(
        decision,
        'expired',
        `It was valid until ${data.validUntil} and had not been begun.`,
      );
    }
    if (await this.#isForAnotherBuild(decision)) return;
    for (const victim of data.victims) {
      const standing = this.#state.residents.get(victim.residentId);
      if (!standing) continue;
      const evicted = await this.#o.evictor.evict(standing, {
        reason: 'room',
        decisionId: decision.decisionId,
        why,
        deadlineMs: DRAIN_DEADLINE_MS,
      });
      if (this.#stopping) return;
      if (!evicted) {
        return this.#close(
          decision,
          'agent-refused',
          `${victim.modelKey} could not be evicted: it was still busy.`,
        );
      }
    }
    await this.#until(() => data.victims.every((v) => !this.#state.residents.has(v.residentId)));
    const need = needWithShared(needByDevice(data.need), this.#state.devices);
    const room = await readRoom([...need.keys()]);
    const short = tooSmall(need, room);
    if (short) {
      const found = short.roomBytes === undefined ? 'no reading' : formatBytes(short.roomBytes);
      const message = `${short.deviceId} had ${found} when it was read again, and ${formatBytes(short.needBytes)} are needed.`;
      return this.#close(decision, 'agent-refused', message, room);
    }
    if (this.#stopping || (await this.#isForAnotherBuild(decision))) return;
    await this.#o.loader.load(decision, why);
    await this.#until(() => !this.#state.openDecisions.has(decision.decisionId));
  }

  /**
   * What a decision believes of a build is not true of the one that took its place: it is closed, and taken again for that
   * one. An engine that is gone is no other: the load fails, and says so.
   */
  async #isForAnotherBuild(decision: OpenDecision): Promise<boolean> {
    const { kind, build } = decision.data.contract.engine;
    const now = (await this.#o.installed.now()).find((engine) => engine.kind === kind);
    if (now === undefined || now.build === build) return false;
    await this.#close(
      decision,
      'agent-refused',
      `${kind} was replaced by build ${now.build}, and this was decided for ${build}.`,
    );
    return true;
  }

  async #close(
    decision: OpenDecision,
    closed: CloseReason,
    reason: string,
    room?: readonly DeviceRoom[],
  ): Promise<void> {
    const why: Why = whyOf(decision);
    await this.#o.facts.worker(
      derivedId('DecisionClosed', decision.decisionId),
      {
        type: 'DecisionClosed',
        data: { decisionId: decision.decisionId, why: closed, reason, ...(room ? { roomRead: room } : {}) },
      },
      why,
    );
    await this.#until(() => !this.#state.openDecisions.has(decision.decisionId));
  }

  /** Waits until the fold says so: a task ends only when its own facts have come back. */
  #until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve) => {
      const watcher = () => {
        if (!holds()) return;
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
    });
  }
}
