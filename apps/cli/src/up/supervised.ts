import { setTimeout as sleep } from 'node:timers/promises';
import type { Details, Launched, Service } from './service.js';

const FIRST_DELAY_MS = 200;
const LAST_DELAY_MS = 10_000;
/** A run that lasted this long was a good one: the next failure starts from the first delay again. */
const SETTLED_MS = 30_000;

export interface SupervisedEvents {
  /** A line for the person at the terminal. */
  readonly say: (line: string) => void;
  /** A run began or ended: the pids that a later supervisor may find have changed. */
  readonly changed: () => void;
}

/** Keeps one service running from its first start until it is stopped. */
export class Supervised {
  readonly service: Service;
  readonly #events: SupervisedEvents;
  readonly #stopping = new AbortController();
  #current: Launched | undefined;
  #watching: Promise<void> | undefined;

  constructor(service: Service, events: SupervisedEvents) {
    this.service = service;
    this.#events = events;
  }

  get pid(): number | undefined {
    return this.#current?.pid;
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** The first start: its failure is the caller's to show. */
  async start(): Promise<Details> {
    const run = this.#launch();
    const details = await run.ready;
    this.#watching = this.#keepUp(run, performance.now());
    return details;
  }

  async stop(withinMs = this.service.stopWithinMs): Promise<void> {
    this.#stopping.abort();
    await this.#current?.stop(withinMs);
    await this.#watching;
  }

  kill(): void {
    this.#stopping.abort();
    this.#current?.kill();
  }

  #launch(): Launched {
    const run = this.service.launch();
    // Whoever waits for readiness hears of the failure; the promise itself may have no other listener.
    run.ready.catch(() => undefined);
    this.#current = run;
    this.#events.changed();
    void run.ended.then(() => {
      if (this.#current === run) this.#current = undefined;
      this.#events.changed();
    });
    return run;
  }

  async #keepUp(first: Launched, startedAtMs: number): Promise<void> {
    const { title } = this.service;
    let run = first;
    let began = startedAtMs;
    let delayMs = FIRST_DELAY_MS;
    for (;;) {
      const why = await run.ended;
      if (this.#isStopped()) return;
      if (performance.now() - began > SETTLED_MS) delayMs = FIRST_DELAY_MS;
      this.#events.say(`${title} ended (${why}); starting it again in ${(delayMs / 1000).toFixed(1)} s`);
      await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      if (this.#isStopped()) return;
      delayMs = Math.min(delayMs * 2, LAST_DELAY_MS);
      began = performance.now();
      run = this.#launch();
      try {
        await run.ready;
        if (!this.#isStopped())
          this.#events.say(`${title} is back after ${((performance.now() - began) / 1000).toFixed(1)} s`);
      } catch (error) {
        if (!this.#isStopped()) this.#events.say(`${title} did not start: ${(error as Error).message}`);
        // One that hangs before it is ready must not be left when the next one starts.
        await run.stop(2_000);
      }
    }
  }
}
