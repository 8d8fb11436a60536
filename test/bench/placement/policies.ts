import { performance } from 'node:perf_hooks';
import { BerthScheduler } from '#placement/simulate/berth-scheduler.js';
import { berthFleetOf } from '#placement/simulate/berth-fleet.js';
import type { Scenario } from '#placement/simulate/model.js';
import { Random } from '#placement/simulate/random.js';
import { simulate, type Scheduler, type SimulationResult } from '#placement/simulate/simulate.js';
import type { World } from '#placement/simulate/world.js';
import { defaultSettings } from '#placement/setting-levels.js';
import type { EffectiveSettings } from '#placement/settings.js';
import type { SoonnessOf } from '#placement/contract.js';
import { CacheScheduler } from './baselines/cache-scheduler.js';
import { ModelMeshScheduler } from './baselines/modelmesh.js';
import { AS_SHIPPED, OllamaScheduler, WITHOUT_CLOCK_AND_COUNT } from './baselines/ollama.js';
import { OneSlotScheduler } from './baselines/one-slot.js';
import {
  belady,
  bySoonness,
  costAwareBelady,
  gdsf,
  greedyDualSize,
  lru,
  soonnessByNextCall,
  soonnessByTrueRate,
} from './baselines/orders.js';
import { SLOTS } from './hardware.js';
import { type Metrics, mean, metricsOf, quantile } from './metrics.js';
import { trueRates } from './workloads.js';

export interface Ran {
  readonly result: SimulationResult;
  readonly metrics: Metrics;
}

export interface Policy {
  readonly name: string;
  /** Knows the calls to come. */
  readonly clairvoyant: boolean;
  run(scenario: Scenario): Ran;
}

function scheduled(name: string, schedulerFor: (world: World) => Scheduler, clairvoyant = false): Policy {
  return {
    name,
    clairvoyant,
    run: (scenario) => {
      const result = simulate(scenario, schedulerFor);
      return { result, metrics: metricsOf(scenario, result) };
    },
  };
}

export interface BerthVariant {
  readonly name?: string;
  readonly settings?: Partial<EffectiveSettings>;
  /** What is believed of a model's size before it was loaded, relative to the truth. */
  readonly believed?: (model: number) => number;
  /** A load corrects what is believed; else it is believed for ever. */
  readonly measures?: boolean;
  /** How soon models are wanted again, known beside the history: an oracle under Berth's own rules. */
  readonly soonnessOf?: (scenario: Scenario) => SoonnessOf;
}

export function berth(variant: BerthVariant = {}): Policy {
  const { name = 'Berth', believed = () => 1, measures = true } = variant;
  const settings: EffectiveSettings = { ...defaultSettings, parallel: SLOTS, ...variant.settings };
  return {
    name,
    clairvoyant: variant.soonnessOf !== undefined,
    run: (scenario) => {
      const soonnessOf = variant.soonnessOf?.(scenario);
      const ms: number[] = [];
      const size = (model: number): number =>
        Math.round((scenario.models[model]?.cardBytes ?? 0) * believed(model));
      const fleet = berthFleetOf(scenario, SLOTS, size);
      const result = simulate(
        scenario,
        (world) =>
          new BerthScheduler(world, {
            fleet,
            settings,
            ...(measures ? {} : { measured: size }),
            ...(soonnessOf ? { soonnessOf } : {}),
            clock: () => performance.now(),
            onDecision: (decision) => ms.push(decision.ms),
          }),
      );
      ms.sort((a, b) => a - b);
      const timing = { decisions: ms.length, decisionMeanMs: mean(ms), decisionP99Ms: quantile(ms, 0.99) };
      return { result, metrics: { ...metricsOf(scenario, result), ...timing } };
    },
  };
}

const OLLAMA = 'Ollama as shipped';
const LRU = 'LRU, regrouped queue';
export const NAMES = { berth: 'Berth', ollama: OLLAMA, lru: LRU } as const;
/** Those that know the calls to come. */
export const CLAIRVOYANTS: readonly string[] = ['Belady', 'Belady by cost'];

export const policies = (): readonly Policy[] => [
  berth(),
  scheduled(OLLAMA, (world) => new OllamaScheduler(world, AS_SHIPPED)),
  scheduled('Ollama without clock and count', (world) => new OllamaScheduler(world, WITHOUT_CLOCK_AND_COUNT)),
  scheduled('One slot, regrouped queue', () => new OneSlotScheduler()),
  scheduled(LRU, (world) => new CacheScheduler(world, lru())),
  scheduled("ModelMesh's rule", () => new ModelMeshScheduler()),
  scheduled('GreedyDual-Size', (world) => new CacheScheduler(world, greedyDualSize())),
  scheduled('GDSF', (world) => new CacheScheduler(world, gdsf())),
  scheduled('Belady', (world) => new CacheScheduler(world, belady(world.scenario.calls)), true),
  scheduled(
    'Belady by cost',
    (world) => new CacheScheduler(world, costAwareBelady(world.scenario.calls)),
    true,
  ),
];

/**
 * What the rates behind the calls of W1 and W2 would be worth, and the calls to come: each under the plain rules of a cache,
 * and in the place of what Berth's own rules read from the history.
 */
export const oracles = (): readonly Policy[] => {
  const byRate = soonnessByTrueRate(trueRates());
  const byCost = 'True rates by cost';
  return [
    ...policies().filter(({ name, clairvoyant }) => name === NAMES.berth || name === LRU || clairvoyant),
    scheduled(byCost, (world) => new CacheScheduler(world, bySoonness(byCost, byRate)), true),
    berth({ name: 'Berth, true rates known', soonnessOf: () => byRate }),
    berth({ name: 'Berth, next calls known', soonnessOf: soonnessByNextCall }),
  ];
};

const SIZE_ERROR = 0.15;

/** A fixed error of up to 15 % either way for each model, as arithmetic without a measurement may have. */
export const sizeError =
  (seed: number) =>
  (model: number): number =>
    1 + SIZE_ERROR * (2 * new Random(seed).fork(`size ${model}`).next() - 1);

/** What measured sizing is worth: exact sizes, sizes that stay wrong, and wrong ones that the first load corrects. */
export const sizingPolicies = (seed: number): readonly Policy[] => [
  berth({ name: 'Berth, sizes known' }),
  berth({ name: 'Berth, sizes 15 % off', believed: sizeError(seed), measures: false }),
  berth({ name: 'Berth, 15 % off until measured', believed: sizeError(seed) }),
];
