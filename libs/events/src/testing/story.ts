import type { BerthEvent, CallEventData, Recorded, WorkerEventData } from '#domain/events/index.js';
import { apiId, callId, decisionId, type ModelKey, modelKey, RAM, residentId } from '#domain/ids.js';
import { SAMPLES } from './samples.js';

/** Writes a log of one worker by its steps, one second apart; for tests of what reads whole logs. */
export class Story {
  readonly events: Recorded<BerthEvent>[] = [];
  #seconds = 0;

  add(stream: string, event: BerthEvent, by = 'agent:w'): this {
    const commit = BigInt(this.events.length + 1) * 100n;
    this.events.push({
      event,
      id: `event-${this.events.length}`,
      stream,
      revision: this.events.filter((e) => e.stream === stream).length,
      position: { commit, prepare: commit },
      metadata: { $correlationId: 'c', $causationId: 'c', at: this.at(), by, schemaVersion: 1 },
    });
    this.#seconds++;
    return this;
  }

  worker(event: BerthEvent): this {
    return this.add('worker-w', event);
  }

  /** ISO time of the step that comes next, or so many seconds away from it. */
  at(offsetSeconds = 0): string {
    return new Date(Date.UTC(2026, 0, 1) + (this.#seconds + offsetSeconds) * 1000).toISOString();
  }

  machine(ramBytes: number): this {
    return this.worker({ type: 'WorkerRegistered', data: SAMPLES.WorkerRegistered }).worker({
      type: 'CapacityMeasured',
      data: { ...SAMPLES.CapacityMeasured, devices: [], ramBytes },
    });
  }

  /** A decision of `bytes` of RAM for resident `name`; `roomBytes` is what it read. */
  decided(
    name: string,
    bytes: number,
    roomBytes: number,
    victims: readonly { readonly name: string; readonly bytes: number }[] = [],
    over: Partial<WorkerEventData<'PlacementDecided'>> = {},
  ): this {
    return this.worker({
      type: 'PlacementDecided',
      data: {
        ...SAMPLES.PlacementDecided,
        decisionId: decisionId(`decision-${name}`),
        residentId: residentId(name),
        modelKey: keyOf(name),
        need: [{ deviceId: RAM, term: 'weights', bytes, basis: 'header' }],
        room: [{ deviceId: RAM, bytes: roomBytes }],
        victims: victims.map((v) => ({
          residentId: residentId(v.name),
          modelKey: keyOf(v.name),
          lossSeconds: 1,
          frees: [{ deviceId: RAM, bytes: v.bytes }],
        })),
        ...over,
      },
    });
  }

  started(name: string): this {
    return this.worker({
      type: 'LoadStarted',
      data: {
        ...SAMPLES.LoadStarted,
        residentId: residentId(name),
        decisionId: decisionId(`decision-${name}`),
        modelKey: keyOf(name),
      },
    });
  }

  ready(name: string, bytes: number): this {
    return this.worker({
      type: 'ResidentReady',
      data: {
        ...SAMPLES.ResidentReady,
        residentId: residentId(name),
        measured: {
          ...SAMPLES.ResidentReady.measured,
          byDevice: [{ deviceId: RAM, weightsBytes: bytes, kvBytes: 0, computeBytes: 0, processBytes: 0 }],
          hostAnonymousBytes: 0,
        },
      },
    });
  }

  loaded(name: string, bytes: number, roomBytes: number): this {
    return this.decided(name, bytes, roomBytes).started(name).ready(name, bytes);
  }

  evictionStarted(name: string, forName?: string): this {
    return this.worker({ type: 'EvictionStarted', data: eviction(name, forName) });
  }

  evicted(name: string, forName?: string): this {
    return this.worker({
      type: 'ResidentEvicted',
      data: { ...eviction(name, forName), freed: [], seconds: 1 },
    });
  }

  callStarted(name: string, api = 'api'): this {
    return this.add(
      'calls-m',
      {
        type: 'CallStarted',
        data: {
          ...SAMPLES.CallStarted,
          callId: callId(name),
          apiId: apiId(api),
          modelKey: modelKey('m'),
          receivedAt: this.at(),
        },
      },
      `api:${api}`,
    );
  }

  callFinished(name: string, over: Partial<CallEventData<'CallFinished'>> = {}, api = 'api'): this {
    return this.add(
      'calls-m',
      {
        type: 'CallFinished',
        data: {
          ...SAMPLES.CallFinished,
          callId: callId(name),
          apiId: apiId('api'),
          modelKey: modelKey('m'),
          stamps: { receivedAt: this.at(-1), forwardedAt: this.at(-1), finishedAt: this.at() },
          ...over,
        },
      },
      `api:${api}`,
    );
  }
}

const keyOf = (name: string): ModelKey => modelKey(`owner/${name}`);

const eviction = (name: string, forName: string | undefined) => ({
  residentId: residentId(name),
  ...(forName === undefined
    ? { reason: 'operator' as const }
    : { reason: 'room' as const, decisionId: decisionId(`decision-${forName}`) }),
});
