import type { DecisionId, ResidentId } from '#domain/ids.js';
import type { EvictionReason } from '#domain/events/worker-events.js';
import type { Resident } from '#domain/worker/state.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentLine } from '../line/line.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter, Why } from './facts.js';
import { FreedMemory, heldBytes } from './freed.js';

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
  /** On this process's own clock: no drain is waited for beyond it. */
  #latest = Number.POSITIVE_INFINITY;
  readonly #hurried = new Set<() => void>();

  readonly #freed: FreedMemory;

  constructor(
    engines: RunningEngines,
    line: AgentLine,
    facts: FactWriter,
    log: Logger,
    freed: FreedMemory = new FreedMemory(log),
  ) {
    this.#freed = freed;
    this.#engines = engines;
    this.#line = line;
    this.#facts = facts;
    this.#log = log;
  }

  /** The agent is to end: drains under way are waited for so long and no longer. */
  hurry(ms: number): void {
    this.#latest = performance.now() + ms;
    for (const again of this.#hurried) again();
  }

  /** @returns false when it was given up; `EvictionFailed` says why. */
  async evict(resident: Resident, options: EvictOptions): Promise<boolean> {
    const { reason, decisionId, why } = options;
    const id = resident.residentId;
    // A second try after a failed one is another eviction: the id must not be that of the first.
    const attempt = why.causationId;
    const named = { residentId: id, reason, ...(decisionId ? { decisionId } : {}) };
    // Not the clock of the wall, which may be set back while calls are waited for.
    const started = performance.now();
    const passedSeconds = () => (performance.now() - started) / 1000;
    const begun = await this.#facts.worker(
      derivedId('EvictionStarted', id, attempt),
      { type: 'EvictionStarted', data: named },
      why,
    );
    const since = resident.leaving?.sinceRevision ?? begun.revision;
    if (decisionId === undefined) this.#line.broadcast({ drainAsked: { residentId: id } });

    const engine = this.#engines.get(id);
    let freed: Awaited<ReturnType<FreedMemory['around']>> | undefined;
    if (engine) {
      const drained = await this.#drained(id, since, started + options.deadlineMs);
      // At its own end the agent waits for calls no longer: what is still busy is stopped, and that is its end.
      if (!drained && reason !== 'shutdown') {
        const holders = this.#line.waitingFor(id, since).length;
        const message =
          holders > 0
            ? `${holders} api process(es) still had calls on ${resident.modelKey} after ${Math.round(passedSeconds())} s.`
            : `${resident.modelKey} was still serving after ${Math.round(passedSeconds())} s.`;
        await this.#facts.worker(
          derivedId('EvictionFailed', id, attempt),
          { type: 'EvictionFailed', data: { ...named, why: 'busy', message } },
          why,
        );
        return false;
      }
      try {
        // The next agent reads anew what is free.
        if (reason === 'shutdown') await this.#engines.stop(id);
        else freed = await this.#freed.around(resident, engine.pid, () => this.#engines.stop(id));
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
        data: { ...named, freed: freed ?? heldBytes(resident), seconds: passedSeconds() },
      },
      why,
    );
    return true;
  }

  /** Resolves true when every api has let go and the engine is idle; false at the deadline. */
  async #drained(id: ResidentId, since: number, deadline: number): Promise<boolean> {
    if (!(await this.#released(id, since, deadline))) return false;
    let answeredAt = performance.now();
    for (;;) {
      const engine = this.#engines.get(id);
      if (!engine) return true;
      const busy = await engine.requestsInFlight();
      if (busy === 0) return true;
      if (busy !== undefined) answeredAt = performance.now();
      // An engine that has stopped answering holds no call that could still end well.
      else if (performance.now() - answeredAt > SILENT_ENGINE_MS) return true;
      if (performance.now() >= Math.min(deadline, this.#latest)) return false;
      await new Promise((resolve) => setTimeout(resolve, ASK_ENGINE_MS));
    }
  }

  #released(id: ResidentId, since: number, deadline: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (value: boolean) => {
        unwatch();
        this.#hurried.delete(wait);
        clearTimeout(timer);
        resolve(value);
      };
      let timer: NodeJS.Timeout | undefined;
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(
          () => settle(this.#line.isDrained(id, since)),
          Math.max(0, Math.min(deadline, this.#latest) - performance.now()),
        );
      };
      this.#hurried.add(wait);
      wait();
      const unwatch = this.#line.onChange(() => {
        if (this.#line.isDrained(id, since)) settle(true);
      });
      if (this.#line.isDrained(id, since)) settle(true);
    });
  }
}
