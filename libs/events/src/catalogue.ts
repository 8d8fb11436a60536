import { callsFold } from '#domain/calls/call-history.js';
import { catalogFold } from '#domain/catalog/catalog.js';
import { claimFold } from '#domain/claims/claim.js';
import type { StreamFold } from '#domain/decider.js';
import type { BerthEvent } from '#domain/events/index.js';
import { fleetFold } from '#domain/fleet/fleet.js';
import { historyFold } from '#domain/history/history.js';
import { type ModelKey, modelKey, type WorkerId, workerId } from '#domain/ids.js';
import { keyFold } from '#domain/keys/key.js';
import { operatorFold } from '#domain/operator/operator.js';
import { pullsFold } from '#domain/pulls/pulls.js';
import { readingsFold } from '#domain/readings/readings.js';
import { settingsFold } from '#domain/settings/settings.js';
import { nightsFold } from '#domain/what-if/nights.js';
import { workerFold } from '#domain/worker/evolve.js';
import { parseHistoryStream, streams } from './streams.js';

/** A stream by its name, the events that it holds and how they are folded. */
export interface TypedStream<State, Event extends BerthEvent> {
  readonly name: string;
  readonly fold: StreamFold<State, Event>;
}

const typed = <S, E extends BerthEvent>(name: string, fold: StreamFold<S, E>): TypedStream<S, E> => ({
  name,
  fold,
});

/** Every stream of the catalogue, typed: what may be appended to it, and what it folds to. */
export const catalogue = {
  worker: (id: WorkerId) => typed(streams.worker(id), workerFold(id)),
  calls: (key: ModelKey) => typed(streams.calls(key), callsFold(key)),
  history: (id: WorkerId, key: ModelKey) => typed(streams.history(id, key), historyFold(id, key)),
  catalog: (id: WorkerId) => typed(streams.catalog(id), catalogFold(id)),
  model: (key: ModelKey) => typed(streams.model(key), claimFold),
  settings: (scope: string) => typed(streams.settings(scope), settingsFold(scope)),
  key: (keyId: string) => typed(streams.key(keyId), keyFold),
  operator: (id: WorkerId) => typed(streams.operator(id), operatorFold(id)),
  pull: (id: WorkerId) => typed(streams.pull(id), pullsFold(id)),
  readings: (id: WorkerId) => typed(streams.readings(id), readingsFold(id)),
  apis: typed(streams.apis, fleetFold),
  whatIf: typed(streams.whatIf, nightsFold),
} as const;

export const CATEGORIES = [
  'worker',
  'calls',
  'history',
  'catalog',
  'model',
  'settings',
  'key',
  'operator',
  'pull',
  'readings',
  'fleet',
  'log',
] as const;
export type Category = (typeof CATEGORIES)[number];

/** Everything before the first dash. @returns undefined for a stream that is not Berth's. */
export function categoryOf(stream: string): Category | undefined {
  const name = stream.slice(0, Math.max(0, stream.indexOf('-')));
  return CATEGORIES.find((category) => category === name);
}

/** The entry of a stream that is only known by name; undefined for one that nothing is folded from. */
export function streamNamed(name: string): TypedStream<unknown, BerthEvent> | undefined {
  const id = name.slice(name.indexOf('-') + 1);
  const widened = <S, E extends BerthEvent>(stream: TypedStream<S, E>) =>
    // A fold is only ever given events of its own stream, which its name says and a union of types cannot.
    stream as unknown as TypedStream<unknown, BerthEvent>;
  switch (categoryOf(name)) {
    case 'worker':
      return widened(catalogue.worker(workerId(id)));
    case 'calls':
      return widened(catalogue.calls(modelKey(id)));
    case 'catalog':
      return widened(catalogue.catalog(workerId(id)));
    case 'model':
      return widened(catalogue.model(modelKey(id)));
    case 'history': {
      const pair = parseHistoryStream(name);
      return pair && widened(catalogue.history(pair.workerId, pair.modelKey));
    }
    case 'settings':
      return widened(catalogue.settings(id));
    case 'key':
      return widened(catalogue.key(id));
    case 'operator':
      return widened(catalogue.operator(workerId(id)));
    case 'pull':
      return widened(catalogue.pull(workerId(id)));
    case 'readings':
      return widened(catalogue.readings(workerId(id)));
    case 'fleet':
      if (name === streams.whatIf) return widened(catalogue.whatIf);
      return name === streams.apis ? widened(catalogue.apis) : undefined;
    case 'log':
    case undefined:
      return undefined;
  }
}
