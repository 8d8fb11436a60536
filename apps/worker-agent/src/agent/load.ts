import type { HistoryEventData } from '#domain/events/history-events.js';
import type { LoadFailureClass, MeasuredMemory } from '#domain/events/worker-events.js';
import { type DeviceId, type ModelKey, RAM, type ResidentId } from '#domain/ids.js';
import { type NeedTerm, placementClassOf } from '#domain/placement-terms.js';
import { limitBytesOf } from '#domain/worker/limits.js';
import type { OpenDecision, Resident, WorkerState } from '#domain/worker/state.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentLine } from '../line/line.js';
import { type EngineExit, LoadFailure, type RunningEngine } from '../ports.js';
import { EngineStarts } from './engine-start.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter, Why } from './facts.js';
import type { FreedMemory } from './freed.js';
import { needByDevice } from './room.js';

export interface LoaderOptions {
  readonly engines: RunningEngines;
  readonly line: AgentLine;
  readonly facts: FactWriter;
  readonly filesOf: (modelKey: ModelKey, artifact: string) => readonly string[] | undefined;
  readonly state: () => WorkerState;
  readonly onExit: (id: ResidentId, exit: EngineExit) => void;
  /** Knows what drivers say that processes hold. */
  readonly freed?: Pick<FreedMemory, 'withProcess'>;
  /** Told when the first load begins and when the last one ends, well or not. */
  readonly onLoading?: (loading: boolean) => void;
  readonly log: Logger;
}

/** Starts engines, waits until they serve, measures them, and says in the log what came of it. */
export class Loader {
  readonly #o: LoaderOptions;
  readonly #aborts = new Map<ResidentId, AbortController>();
  /** Engines that went while their load was being told, and how. */
  readonly #gone = new Map<ResidentId, EngineExit>();
  readonly #starts: EngineStarts;

  constructor(options: LoaderOptions) {
    this.#o = options;
    this.#starts = new EngineStarts({
      ...options,
      onStarted: (engine) => {
        // The end of the one before it was no end of the load.
        this.#gone.delete(engine.residentId);
        this.#watch(engine);
      },
    });
  }

  /** Loads what a decision says. Never rejects for a failed load: that is a fact like another. */
  async load(decision: OpenDecision, why: Why): Promise<void> {
    const { data } = decision;
    const { residentId } = data;
    const started = performance.now();
    // From now on it loads: when it is told to end, or goes before the log has taken its start, that is a failed load too.
    this.#begins(residentId);
    let engine: RunningEngine;
    try {
      engine = await this.#starts.launch(data);
    } catch (error) {
      this.#ends(residentId);
      const failure = asFailure(error);
      await this.#failed(data, failure.failureClass, failure.message, failure.logTail, seconds(started), why);
      return;
    }
    try {
      await this.#starts.say(engine, data, why);
    } catch (error) {
      // A log that will never know of it: nothing may run that it does not explain.
      await this.#o.engines.stop(residentId);
      this.#ends(residentId);
      throw error;
    }
    await this.finish(engine, data, started, why);
  }

  /**
   * The second half of a load, also for one that an agent before us began: from started to ready or failed.
   * @param startedMs on this process's own clock, which nobody sets
   */
  async finish(first: RunningEngine, data: OpenDecision['data'], startedMs: number, why: Why): Promise<void> {
    const { residentId, modelKey, artifact, contract } = data;
    const abort = this.#aborts.get(residentId) ?? this.#begins(residentId);
    let told = false;
    try {
      const { engine, facts } = await this.#starts.untilReady(first, data, why, abort.signal, (progress) => {
        this.#o.line.broadcast({ progress: { residentId, ...progress, elapsedSeconds: seconds(startedMs) } });
      });
      const measured = withPlannedProcess(await engine.measure(), data.need);
      await this.#o.facts.worker(
        derivedId('ResidentReady', residentId),
        {
          type: 'ResidentReady',
          data: {
            residentId,
            stagedAt: facts.stagedAt,
            loadedAt: facts.loadedAt,
            measured,
            computesOn: contract.devices,
            kind: contract.kind,
          },
        },
        why,
      );
      told = true;
      await this.#grown(data, why);
      const took = loadSeconds(engine.startedAt, facts.loadedAt, seconds(startedMs));
      const predicted = needByDevice(data.need);
      const byDevice = (await this.#o.freed?.withProcess(measured.byDevice, engine.pid)) ?? measured.byDevice;
      await this.#remeasured(residentId, measured, byDevice, why);
      await this.#o.facts.history(
        derivedId('LoadMeasured', residentId),
        modelKey,
        {
          type: 'LoadMeasured',
          data: {
            class: placementClassOf(artifact, contract),
            residentId,
            byDevice,
            hostAnonymousBytes: measured.hostAnonymousBytes,
            hostResidentBytes: measured.hostResidentBytes,
            seconds: took,
            predictedByDevice: [...predicted].map(([deviceId, bytes]) => ({ deviceId, bytes })),
            ...(data.cause.kind === 'call' ? { callId: data.cause.callId } : {}),
          },
        },
        why,
      );
      if (data.cause.kind === 'probe') await this.#fill(engine, data, why);
    } catch (error) {
      // It serves, and the log knows; what failed is only the telling of its figures.
      if (told) throw error;
      const failure = asFailure(error);
      await this.#o.engines.stop(residentId);
      await this.#failed(
        data,
        failure.failureClass,
        failure.message,
        failure.logTail,
        seconds(startedMs),
        why,
      );
    } finally {
      this.#ends(residentId);
      const exit = this.#gone.get(residentId);
      this.#gone.delete(residentId);
      // It served, and went before the log had heard of it.
      if (told && exit) this.#o.onExit(residentId, exit);
    }
  }

  async #grown({ cause, residentId, contract, decisionId }: OpenDecision['data'], why: Why): Promise<void> {
    if (cause.kind !== 'grow') return;
    await this.#o.facts.worker(
      derivedId('ContextGrown', decisionId),
      {
        type: 'ContextGrown',
        data: {
          residentId,
          from: cause.fromTokens,
          to: contract.contextTokens,
          cause: `a call wanted ${cause.wantedTokens} tokens`,
        },
      },
      why,
    );
  }

  /** Says what its process takes of its cards, where that is not what its plan said. */
  async #remeasured(
    residentId: ResidentId,
    before: MeasuredMemory,
    byDevice: MeasuredMemory['byDevice'],
    why: Why,
  ): Promise<void> {
    const same = byDevice.every((d) =>
      before.byDevice.some((b) => b.deviceId === d.deviceId && b.processBytes === d.processBytes),
    );
    if (same) return;
    await this.#o.facts.worker(
      derivedId('ResidentRemeasured', residentId),
      { type: 'ResidentRemeasured', data: { residentId, measured: { ...before, byDevice } } },
      why,
    );
  }

  async #probed(
    data: OpenDecision['data'],
    came: Pick<HistoryEventData<'ContextProbed'>, 'ok' | 'filledTokens' | 'byDevice' | 'reason' | 'failure'>,
    why: Why,
  ): Promise<void> {
    await this.#o.facts.history(
      derivedId('ContextProbed', data.decisionId),
      data.modelKey,
      {
        type: 'ContextProbed',
        data: {
          class: placementClassOf(data.artifact, data.contract),
          contextTokens: data.contract.contextTokens,
          ...came,
          roomBytes: roomTried(data),
          limits: this.#limits(data),
        },
      },
      why,
    );
  }

  #limits({ room }: OpenDecision['data']): readonly { deviceId: DeviceId; bytes: number }[] {
    const state = this.#o.state();
    return room.flatMap(({ deviceId }) => {
      const bytes = limitBytesOf(state, deviceId);
      return bytes === undefined ? [] : [{ deviceId, bytes }];
    });
  }

  /** Nobody calls it, nobody wants its room, and the agent stays. */
  #isLeftAlone(id: ResidentId): boolean {
    const resident = this.#o.state().residents.get(id);
    const ended = this.#aborts.get(id)?.signal.aborted ?? false;
    return !ended && resident?.leaving === undefined && this.#o.line.isServing(id) !== true;
  }

  /** Fills the cache of a probed engine, and says what it came to then. A call that comes ends the filling. */
  async #fill(engine: RunningEngine, data: OpenDecision['data'], why: Why): Promise<void> {
    const { residentId, contract } = data;
    let filledTokens: number | undefined;
    try {
      if (contract.kind === 'chat') filledTokens = await engine.fill(() => this.#isLeftAlone(residentId));
      const { byDevice } = await engine.measure();
      await this.#probed(
        data,
        { ok: true, byDevice, ...(filledTokens === undefined ? {} : { filledTokens }) },
        why,
      );
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      await this.#probed(data, { ok: false, reason: message, failure: 'exited' }, why);
    }
  }

  /** Ends a load that is under way; it fails as `cancelled`. */
  cancel(id: ResidentId): void {
    this.#aborts.get(id)?.abort();
  }

  /** It has a process here, or gets one: also before the log's word of it has come back. */
  isLoading(id: ResidentId): boolean {
    return this.#aborts.has(id);
  }

  get loading(): boolean {
    return this.#aborts.size > 0;
  }

  /** From now on an unexpected end of the process is told: for one that still loads, by `finish`. */
  adoptEngine(engine: RunningEngine, stillLoads: boolean): void {
    if (stillLoads) this.#begins(engine.residentId);
    this.#watch(engine);
  }

  /** What an agent before us spawned and may not have come to tell: the load, or another process of it. */
  async sayStarted(engine: RunningEngine, resident: Resident, decision: OpenDecision): Promise<void> {
    const why = whyOf(decision);
    if (resident.phase === 'planned') await this.#starts.say(engine, decision.data, why);
    else if (engine.port !== resident.port) await this.#starts.sayAgain(engine, why);
  }

  #begins(id: ResidentId): AbortController {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    if (this.#aborts.size === 1) this.#o.onLoading?.(true);
    return abort;
  }

  #ends(id: ResidentId): void {
    if (this.#aborts.delete(id) && this.#aborts.size === 0) this.#o.onLoading?.(false);
  }

  #watch(engine: RunningEngine): void {
    this.#o.engines.add(engine, (exit) => {
      // While it loads, `ready` tells the failure with its class.
      if (this.#aborts.has(engine.residentId)) this.#gone.set(engine.residentId, exit);
      else this.#o.onExit(engine.residentId, exit);
    });
  }

  async #failed(
    data: OpenDecision['data'],
    failureClass: LoadFailureClass,
    message: string,
    logTail: string,
    took: number,
    why: Why,
  ): Promise<void> {
    const { residentId, modelKey, artifact, contract } = data;
    this.#o.log.warn({ residentId, modelKey, artifact, class: failureClass }, `load failed: ${message}`);
    await this.#o.facts.history(
      derivedId('LoadRefusedByEngine', residentId),
      modelKey,
      {
        type: 'LoadRefusedByEngine',
        data: {
          class: placementClassOf(artifact, contract),
          residentId,
          failure: failureClass,
          message,
          seconds: took,
          roomBytes: roomTried(data),
          limits: this.#limits(data),
        },
      },
      why,
    );
    if (data.cause.kind === 'probe' && failureClass !== 'cancelled')
      await this.#probed(data, { ok: false, reason: message, failure: failureClass }, why);
    await this.#o.facts.worker(
      derivedId('LoadFailed', residentId),
      { type: 'LoadFailed', data: { residentId, class: failureClass, message, logTail, seconds: took } },
      why,
    );
  }
}

/** The room that a load had: what was free when it was decided, and what its victims gave up for it. */
const roomTried = ({ room, victims }: OpenDecision['data']): OpenDecision['data']['room'] =>
  room.map(({ deviceId, bytes }) => {
    if (bytes === undefined) return { deviceId };
    const freed = victims.flatMap((victim) => victim.frees).filter((f) => f.deviceId === deviceId);
    return { deviceId, bytes: freed.reduce((sum, f) => sum + f.bytes, bytes) };
  });

export const whyOf = (decision: OpenDecision): Why => ({
  correlationId: decision.data.cause.kind === 'call' ? decision.data.cause.callId : decision.decisionId,
  causationId: decision.eventId,
});

/** What an eviction or crash of a resident belongs to, when no decision is at hand. */
export const whyOfResident = (resident: Resident, causationId: string): Why => ({
  correlationId: resident.residentId,
  causationId,
});

const seconds = (sinceMs: number): number => Math.max(0, (performance.now() - sinceMs) / 1000);

/**
 * From spawn to serving. The engine's own time is the exact one; when a clock was set meanwhile it is nonsense, and what
 * passed here until the load was noticed counts.
 */
function loadSeconds(startedAt: string, loadedAt: string, passedSeconds: number): number {
  const said = (Date.parse(loadedAt) - Date.parse(startedAt)) / 1000;
  return said > 0 && said <= passedSeconds + 1 ? said : passedSeconds;
}

/**
 * What a process takes of an accelerator beside its buffers, only the driver can tell, a moment later: until then it
 * counts with what its plan said, which an earlier load on that device was measured to take.
 */
export function withPlannedProcess(measured: MeasuredMemory, need: readonly NeedTerm[]): MeasuredMemory {
  const planned = (deviceId: DeviceId) =>
    need.find((term) => term.deviceId === deviceId && term.term === 'process')?.bytes ?? 0;
  return {
    ...measured,
    byDevice: measured.byDevice.map((device) =>
      device.deviceId === RAM || device.processBytes > 0
        ? device
        : { ...device, processBytes: planned(device.deviceId) },
    ),
  };
}

const asFailure = (error: unknown): LoadFailure =>
  error instanceof LoadFailure
    ? error
    : new LoadFailure('exited', error instanceof Error ? error.message : String(error), '');
