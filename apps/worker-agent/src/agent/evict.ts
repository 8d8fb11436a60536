import type { DecisionId, DeviceId, ResidentId } from '#domain/ids.js';
import type { EvictionReason } from '#domain/events/worker-events.js';
import type { Resident } from '#domain/worker/state.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentLine } from '../line/line.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter, Why } from './facts.js';

export interface EvictOptions {
  readonly reason: EvictionReason;
  readonly decisionId?: DecisionId;
  readonly why: Why;
  /** How long calls under way are waited for. */
  readonly deadlineMs: number;
}

/** How often the engine is asked whether it still works on something, once every api has let go. */
const ASK_ENGINE_MS = 25;
const SILENT_ENGINE_MS = 10_000;

/**
 * An eviction is a drain: every api that could send calls says that it sends none and has none, the engine says that it
 * works on nothing, and only then is it stopped. Repeating it after a crash writes nothing twice.
 */
export class Evictor {
  readonly #engines: RunningEngines;
  readonly #line: AgentLine;
  readonly #facts: FactWriter;
  readonly #log: Logger;

  constructor(engines: RunningEngines, line: AgentLine, facts: FactWriter, log: Logger) {
    this.#engines = engines;
    this.#line = line;
    this.#facts = facts;
    this.#log = log;
  }

  /** @returns false when it was given up; `EvictionFailed` says why. */
  async evict(resident: Resident, options: EvictOptions): Promise<boolean> {
    const { reason, decisionId, why } = options;
    const id = resident.residentId;
    // A second try after a failed one is another eviction: the id must not be that of the first.
    const attempt = why.causationId;
    const named = { residentId: id, reason, ...(decisionId ? { decisionId } : {}) };
    const started = Date.now();
    const begun = await this.#facts.worker(
      derivedId('EvictionStarted', id, attempt),
      { type: 'EvictionStarted', data: named },
      why,
    );
    const since = resident.leaving?.sinceRevision ?? begun.revision;
    if (decisionId === undefined) this.#line.broadcast({ drainAsked: { residentId: id } });

    const engine = this.#engines.get(id);
    if (engine) {
      const drained = await this.#drained(id, since, started + options.deadlineMs);
      if (!drained) {
        const holders = this.#line.waitingFor(id, since).length;
        const message =
          holders > 0
            ? `${holders} api process(es) still had calls on ${resident.modelKey} after ${Math.round((Date.now() - started) / 1000)} s.`
            : `${resident.modelKey} was still serving after ${Math.round((Date.now() - started) / 1000)} s.`;
        await this.#facts.worker(
          derivedId('EvictionFailed', id, attempt),
          { type: 'EvictionFailed', data: { ...named, why: 'busy', message } },
          why,
        );
        return false;
      }
      try {
        await this.#engines.stop(id);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        this.#log.error({ residentId: id, reason: message }, 'an engine would not stop');
        await this.#facts.worker(
          derivedId('EvictionFailed', id, attempt),
          { type: 'EvictionFailed', data: { ...named, why: 'would-not-stop', message } },
          why,
        );
        return false;
      }
    }
    // It went by itself meanwhile, and that is told as what it was.
    if (!this.#engines.claimEnd(id)) return true;
    await this.#facts.worker(
      derivedId('ResidentEvicted', id),
      {
        type: 'ResidentEvicted',
        data: { ...named, freed: heldBytes(resident), seconds: (Date.now() - started) / 1000 },
      },
      why,
    );
    return true;
  }

  /** Resolves true when every api has let go and the engine is idle; false at the deadline. */
  async #drained(id: ResidentId, since: number, deadline: number): Promise<boolean> {
    if (!(await this.#released(id, since, deadline))) return false;
    let answeredAt = Date.now();
    for (;;) {
      const engine = this.#engines.get(id);
      if (!engine) return true;
      const busy = await engine.requestsInFlight();
      if (busy === 0) return true;
      if (busy !== undefined) answeredAt = Date.now();
      // An engine that has stopped answering holds no call that could still end well.
      else if (Date.now() - answeredAt > SILENT_ENGINE_MS) return true;
      if (Date.now() >= deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, ASK_ENGINE_MS));
    }
  }

  #released(id: ResidentId, since: number, deadline: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (value: boolean) => {
        unwatch();
        clearTimeout(timer);
        resolve(value);
      };
      const timer = setTimeout(
        () => {
          settle(this.#line.isDrained(id, since));
        },
        Math.max(0, deadline - Date.now()),
      );
      const unwatch = this.#line.onChange(() => {
        if (this.#line.isDrained(id, since)) settle(true);
      });
      if (this.#line.isDrained(id, since)) settle(true);
    });
  }
}

/** What a resident was measured to hold: what its end gives back. */
export function heldBytes(
  resident: Resident,
): readonly { readonly deviceId: DeviceId; readonly bytes: number }[] {
  return (resident.measured?.byDevice ?? []).map((d) => ({
    deviceId: d.deviceId,
    bytes: d.weightsBytes + d.kvBytes + d.computeBytes + d.processBytes,
  }));
}
