import { callsFold, type CallHistory } from '../calls/call-history.js';
import type { BerthEvent, CallEvent, HistoryEvent, Recorded, WorkerEvent } from '../events/index.js';
import { historyFold, type PairHistory } from '../history/history.js';
import { median } from '../median.js';
import { measuredLoad } from '../history/load-seconds.js';
import { type ModelKey, modelKey, type WorkerId, workerId } from '../ids.js';
import { classKey, type PlacementClass, placementClassOf } from '../placement-terms.js';
import { deviceTotals, kvBytesPerToken, sizeErrors } from './rules.js';

/** A figure that follows from the log by a rule. */
export interface DerivedFact {
  readonly rule: string;
  /** Which worker, model and class it is about. */
  readonly about: Readonly<Record<string, string>>;
  readonly figures: Readonly<Record<string, number>>;
  /** How many events it follows from. */
  readonly from: number;
}

/** What a decision used, where the same rule gives another figure today from the events that it could read. */
export interface ChangedFact {
  readonly decisionId: string;
  readonly at: string;
  readonly modelKey: string;
  readonly rule: string;
  readonly figure: string;
  readonly used: number;
  readonly derived: number;
}

export interface FactsReport {
  readonly rules: Readonly<Record<string, number>>;
  readonly facts: readonly DerivedFact[];
  readonly decisions: number;
  /** How many figures of decisions were compared. */
  readonly compared: number;
  readonly changed: readonly ChangedFact[];
}

/** Versions of the rules below: whoever changes what one gives raises its number. */
export const FACT_RULES = {
  'load-seconds': 1,
  'memory-by-device': 1,
  'kv-bytes-per-token': 1,
  'call-speed': 1,
  'memory-bandwidth': 1,
  'size-accuracy': 1,
} as const;

/** The rules by which decisions take figures from measurements. */
export const RULES_OF_DECISIONS = {
  'load-seconds': (history: PairHistory, plan: PlacementClass): number | undefined =>
    measuredLoad(history, plan)?.seconds,
  'memory-by-device': (
    history: PairHistory,
    plan: PlacementClass,
  ): ReadonlyMap<string, number> | undefined => {
    const own = history.measured.get(classKey(plan));
    return own && deviceTotals(own.value.byDevice);
  },
} as const;
export type RulesOfDecisions = typeof RULES_OF_DECISIONS;

/** Figures are rounded in events and sums: what differs by less than a part in a million is the same. */
const same = (one: number, other: number): boolean =>
  Math.abs(one - other) <= Math.max(Math.abs(one), Math.abs(other)) * 1e-6;

interface Pair {
  history: PairHistory;
  readonly sizes: Map<string, { readonly measured: number; readonly predicted: number }[]>;
  measurements: number;
}

/**
 * Derives facts from a log that is handed over in its order. At each decision the facts are derived from what stood in
 * the log before it, and compared with the figures that the decision says it used.
 */
export class FactsDerivation {
  readonly #pairs = new Map<string, Pair>();
  readonly #calls = new Map<ModelKey, CallHistory>();
  readonly #bandwidth = new Map<WorkerId, { readonly allGBps: number; readonly oneCoreGBps: number }>();
  readonly #measuredBy = new Map<string, string>();
  readonly #changed: ChangedFact[] = [];
  readonly #rules: RulesOfDecisions;
  #decisions = 0;
  #compared = 0;

  constructor(rules: RulesOfDecisions = RULES_OF_DECISIONS) {
    this.#rules = rules;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const dash = recorded.stream.indexOf('-');
    const id = recorded.stream.slice(dash + 1);
    switch (recorded.stream.slice(0, dash)) {
      case 'history':
        this.#history(id, recorded as Recorded<HistoryEvent>);
        return;
      case 'calls': {
        const key = modelKey(id);
        const fold = callsFold(key);
        this.#calls.set(
          key,
          fold.evolve(this.#calls.get(key) ?? fold.initial(), recorded as Recorded<CallEvent>),
        );
        return;
      }
      case 'worker':
        this.#worker(workerId(id), recorded as Recorded<WorkerEvent>);
        return;
    }
  }

  finish(): FactsReport {
    return {
      rules: FACT_RULES,
      facts: [...this.#pairFacts(), ...this.#callFacts(), ...this.#bandwidthFacts()],
      decisions: this.#decisions,
      compared: this.#compared,
      changed: this.#changed,
    };
  }

  #history(id: string, recorded: Recorded<HistoryEvent>): void {
    const tilde = id.indexOf('~');
    const fold = historyFold(workerId(id.slice(0, tilde)), modelKey(id.slice(tilde + 1)));
    const pair: Pair = this.#pairs.get(id) ?? { history: fold.initial(), sizes: new Map(), measurements: 0 };
    this.#pairs.set(id, pair);
    pair.history = fold.evolve(pair.history, recorded);
    const { event } = recorded;
    if (event.type !== 'LoadMeasured') return;
    pair.measurements += 1;
    const key = classKey(event.data.class);
    this.#measuredBy.set(recorded.id, `${id}|${key}`);
    const measured = sum([...deviceTotals(event.data.byDevice).values()]);
    const predicted = sum(event.data.predictedByDevice.map((d) => d.bytes));
    const sizes = pair.sizes.get(key) ?? [];
    pair.sizes.set(key, [...sizes, { measured, predicted }]);
  }

  #worker(id: WorkerId, recorded: Recorded<WorkerEvent>): void {
    const { event, metadata } = recorded;
    if (event.type === 'CapacityMeasured' && event.data.memoryBandwidth)
      this.#bandwidth.set(id, event.data.memoryBandwidth);
    if (event.type !== 'PlacementDecided') return;
    this.#decisions += 1;
    const data = event.data;
    const history = this.#pairs.get(`${id}~${data.modelKey}`)?.history;
    if (!history) return;
    const compare = (
      rule: keyof typeof FACT_RULES,
      figure: string,
      used?: number,
      derived?: number,
    ): void => {
      if (used === undefined || derived === undefined) return;
      this.#compared += 1;
      if (same(used, derived)) return;
      const { decisionId, modelKey: key } = data;
      this.#changed.push({ decisionId, at: metadata.at, modelKey: key, rule, figure, used, derived });
    };
    const plan = placementClassOf(data.artifact, data.contract);
    compare(
      'load-seconds',
      'seconds',
      data.predicted.loadSeconds,
      this.#rules['load-seconds'](history, plan),
    );
    const totals = this.#rules['memory-by-device'](history, plan);
    if (!totals) return;
    for (const deviceId of new Set(data.need.map((term) => term.deviceId))) {
      const terms = data.need.filter((term) => term.deviceId === deviceId);
      // Only what the decision says it took from a measurement of this class.
      const taken = terms.filter((t) => t.basis === 'measured' && t.fromEvent !== undefined);
      const ofClass = taken.every((t) =>
        this.#measuredBy.get(t.fromEvent ?? '')?.endsWith(`|${classKey(plan)}`),
      );
      if (taken.length === 0 || taken.length !== terms.length || !ofClass) continue;
      compare('memory-by-device', deviceId, sum(terms.map((t) => t.bytes ?? 0)), totals.get(deviceId));
    }
  }

  *#pairFacts(): Generator<DerivedFact> {
    for (const [id, { history, sizes }] of [...this.#pairs].sort(byKey)) {
      const [worker, model] = split(id);
      for (const [key, seconds] of history.loadSeconds) {
        const about = { workerId: worker, modelKey: model, class: key };
        const middle = median(seconds);
        if (middle !== undefined)
          yield { rule: 'load-seconds', about, figures: { medianSeconds: middle }, from: seconds.length };
      }
      for (const [key, { value }] of history.measured) {
        const about = { workerId: worker, modelKey: model, class: key };
        yield {
          rule: 'memory-by-device',
          about,
          figures: Object.fromEntries(deviceTotals(value.byDevice)),
          from: 1,
        };
        const perToken = kvBytesPerToken(value.byDevice, value.class);
        if (perToken !== undefined)
          yield { rule: 'kv-bytes-per-token', about, figures: { bytesPerToken: perToken }, from: 1 };
      }
      for (const [key, loads] of sizes) {
        const errors = sizeErrors(loads);
        if (errors)
          yield {
            rule: 'size-accuracy',
            about: { workerId: worker, modelKey: model, class: key },
            figures: errors,
            from: loads.length,
          };
      }
    }
  }

  *#callFacts(): Generator<DerivedFact> {
    for (const [key, { finished }] of [...this.#calls].sort(byKey)) {
      const decode = median(finished.flatMap((call) => call.decodeMsPerToken ?? []));
      const prompt = median(finished.flatMap((call) => call.promptMsPerToken ?? []));
      const output = median(finished.flatMap((call) => call.outputTokens ?? []));
      const figures = {
        ...(decode === undefined ? {} : { decodeMsPerToken: decode }),
        ...(prompt === undefined ? {} : { promptMsPerToken: prompt }),
        ...(output === undefined ? {} : { outputTokens: output }),
      };
      if (Object.keys(figures).length > 0)
        yield { rule: 'call-speed', about: { modelKey: key }, figures, from: finished.length };
    }
  }

  *#bandwidthFacts(): Generator<DerivedFact> {
    for (const [id, { allGBps, oneCoreGBps }] of [...this.#bandwidth].sort(byKey))
      yield { rule: 'memory-bandwidth', about: { workerId: id }, figures: { allGBps, oneCoreGBps }, from: 1 };
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const split = (id: string): [string, string] => {
  const tilde = id.indexOf('~');
  return [id.slice(0, tilde), id.slice(tilde + 1)];
};
const byKey = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : 1;
