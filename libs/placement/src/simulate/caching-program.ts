import { loadSecondsFrom, type Scenario, type SimCall } from './model.js';
import { serviceOf } from './world.js';

/**
 * Lower bounds on the load seconds of any policy: the linear relaxation of weighted caching with forced residency.
 * Between two calls of a model a share z of it is kept; what is not kept is loaded again. With a RAM tier a further
 * share y of its file is kept in RAM, and loads faster. At each call the called model is there whole, and the others
 * share what is left of the cards. The program is that of the offline problem as min-cost flow (Chrobak, Karloff,
 * Payne and Vishwanathan, "New results on server problems", 1991, for equal sizes; Albers, Arora and Khanna,
 * "Page replacement for general caching problems", 1999, for sizes), one variable per interval between two calls.
 */
export interface Interval {
  readonly model: number;
  /** The interval holds memory at the rows from this one … */
  readonly from: number;
  /** … up to, not including, this one. */
  readonly to: number;
}

export interface CachingProgram {
  readonly intervals: readonly Interval[];
  /** Card bytes that are left for kept models at each row, and file bytes in RAM. */
  readonly cardRoom: readonly number[];
  readonly fileRoom: number;
  readonly cardBytes: readonly number[];
  readonly fileBytes: readonly number[];
  readonly diskSeconds: readonly number[];
  readonly ramSeconds: readonly number[];
  /** Loads that nothing can spare: the first of each model. */
  readonly forcedSeconds: number;
}

/** What a scenario's boxes and load model do not say, where figures were measured. By place in the list of models. */
export interface MeasuredCosts {
  readonly bytes: readonly number[];
  readonly loadSeconds: readonly number[];
  readonly roomBytes: number;
  /** Models that are there before the first call. */
  readonly there: ReadonlySet<number>;
}

/** Every call is served when it comes: its model is there whole from then until the output ends. */
export function programAtOnce(scenario: Scenario, measured?: MeasuredCosts): CachingProgram {
  const base = costsOf(scenario, measured);
  const total = measured?.roomBytes ?? totalBytes(scenario);
  const there = measured?.there ?? NONE;
  // Spans in which each model must be there; calls that overlap or touch make one.
  const spans = scenario.models.map((): { readonly fromMs: number; toMs: number }[] => []);
  for (const call of scenario.calls) {
    const list = spans[call.model];
    const before = list?.at(-1);
    const toMs = call.atMs + serviceMs(scenario, call);
    if (before && call.atMs <= before.toMs) before.toMs = Math.max(before.toMs, toMs);
    else list?.push({ fromMs: call.atMs, toMs });
  }
  // Most is kept just as a forced span begins: a row for each beginning is enough.
  const begins = spans
    .flatMap((list, model) => list.map((span) => ({ model, ...span })))
    .sort((a, b) => a.fromMs - b.fromMs || a.model - b.model);
  const times = begins.map((s) => s.fromMs);
  const intervals: Interval[] = [];
  const forced = new Float64Array(begins.length);
  const last = new Map<number, number>();
  for (const { model, fromMs, toMs } of begins) {
    const from = firstWhere(times, (ms) => ms >= fromMs);
    const to = firstWhere(times, (ms) => ms >= toMs);
    for (let row = from; row < Math.max(to, from + 1); row++)
      forced[row] = (forced[row] ?? 0) + (base.cardBytes[model] ?? 0);
    const before = last.get(model) ?? (there.has(model) ? 0 : undefined);
    if (before !== undefined) intervals.push({ model, from: before, to: from });
    last.set(model, Math.max(to, from + 1));
  }
  return {
    ...base,
    intervals,
    // More at once than the cards hold must wait in any case: then nothing else is kept.
    cardRoom: [...forced].map((bytes) => Math.max(0, total - bytes)),
    forcedSeconds: firstLoads(last.keys(), there, base.diskSeconds),
  };
}

const NONE: ReadonlySet<number> = new Set();

function firstLoads(
  called: Iterable<number>,
  there: ReadonlySet<number>,
  diskSeconds: readonly number[],
): number {
  let seconds = 0;
  for (const model of called) if (!there.has(model)) seconds += diskSeconds[model] ?? 0;
  return seconds;
}

function serviceMs(scenario: Scenario, call: SimCall): number {
  const model = scenario.models[call.model];
  return model ? serviceOf(model, call).totalMs : 0;
}

/** The first place in rising times from which on `holds` is true; behind the last when it never is. */
function firstWhere(times: readonly number[], holds: (ms: number) => boolean): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(times[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Every call begins at most `delaySeconds` after it comes. Of each model only calls further apart than that are looked
 * at: between the latest beginning of one and the coming of the next the model must be kept, or is loaded again.
 */
export function programWithDelay(
  scenario: Scenario,
  delaySeconds: number,
  measured?: MeasuredCosts,
): CachingProgram {
  const base = costsOf(scenario, measured);
  const there = measured?.there ?? NONE;
  const delayMs = delaySeconds * 1000;
  const last = new Map<number, number>();
  const spans: { readonly model: number; readonly fromMs: number; readonly toMs: number }[] = [];
  for (const { model, atMs } of scenario.calls) {
    const before = last.get(model);
    if (before !== undefined && atMs <= before + delayMs) continue;
    if (before !== undefined) spans.push({ model, fromMs: before + delayMs, toMs: atMs });
    else if (there.has(model)) spans.push({ model, fromMs: 0, toMs: atMs });
    last.set(model, atMs);
  }
  // Most is kept just before an interval ends: a row for each end is enough.
  const ends = [...new Set(spans.map((s) => s.toMs))].sort((a, b) => a - b);
  const total = measured?.roomBytes ?? totalBytes(scenario);
  return {
    ...base,
    intervals: spans.map(({ model, fromMs, toMs }) => ({
      model,
      from: firstWhere(ends, (ms) => ms > fromMs),
      to: firstWhere(ends, (ms) => ms >= toMs) + 1,
    })),
    cardRoom: ends.map(() => total),
    forcedSeconds: firstLoads(last.keys(), there, base.diskSeconds),
  };
}

const totalBytes = (scenario: Scenario): number =>
  scenario.boxes.reduce((sum, box) => sum + box.devices.reduce((s, d) => s + d.totalBytes, 0), 0);

function costsOf(
  scenario: Scenario,
  measured: MeasuredCosts | undefined,
): Pick<CachingProgram, 'fileRoom' | 'cardBytes' | 'fileBytes' | 'diskSeconds' | 'ramSeconds'> {
  const { models, boxes, load } = scenario;
  return {
    fileRoom: boxes.reduce((sum, box) => sum + box.fileCacheBytes, 0),
    cardBytes: measured?.bytes ?? models.map((m) => m.cardBytes),
    fileBytes: models.map((m) => m.fileBytes),
    diskSeconds: measured?.loadSeconds ?? models.map((m) => loadSecondsFrom(load, 'disk', m.fileBytes)),
    ramSeconds: models.map((m) => loadSecondsFrom(load, 'ram', m.fileBytes)),
  };
}

const SCALE = 1e-9;

/** Minimise cost · x under row bounds and column bounds; the matrix by columns. */
export interface LinearProgram {
  readonly numCols: number;
  readonly numRows: number;
  readonly colCost: Float64Array;
  readonly colLower: Float64Array;
  readonly colUpper: Float64Array;
  readonly rowLower: readonly number[];
  readonly rowUpper: readonly number[];
  readonly starts: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
  /** Least load seconds = this + the least cost. */
  readonly constantSeconds: number;
}

/**
 * Columns: z of each interval, y of each with a RAM tier, and what is kept at each row, which follows from the row
 * before; so that a day has thousands of entries and not millions. Without columns the constant is the answer.
 */
export function linearProgramOf(program: CachingProgram): LinearProgram {
  const { diskSeconds, ramSeconds, cardBytes, fileBytes } = program;
  const intervals = program.intervals.filter((i) => i.to > i.from);
  const rows = program.cardRoom.length;
  const ram = program.fileRoom > 0;
  const n = intervals.length;
  const tiers = ram ? 2 : 1;
  const kept = tiers * n;
  const cols = n === 0 ? 0 : kept + tiers * rows;
  const entries: [row: number, col: number, value: number][] = [];
  const colCost = new Float64Array(cols);
  const colUpper = new Float64Array(cols);
  intervals.forEach((interval, k) => {
    const { model, from, to } = interval;
    const disk = diskSeconds[model] ?? 0;
    const put = (tier: number, bytes: number, saved: number): void => {
      const col = tier * n + k;
      colCost[col] = -saved;
      colUpper[col] = 1;
      entries.push([tier * rows + from, col, -bytes * SCALE]);
      if (to < rows) entries.push([tier * rows + to, col, bytes * SCALE]);
    };
    put(0, cardBytes[model] ?? 0, disk);
    if (ram) put(1, fileBytes[model] ?? 0, disk - (ramSeconds[model] ?? 0));
  });
  for (let tier = 0; tier < tiers && n > 0; tier++) {
    for (let row = 0; row < rows; row++) {
      const col = kept + tier * rows + row;
      const room = tier === 0 ? (program.cardRoom[row] ?? 0) : program.fileRoom;
      colUpper[col] = Math.max(0, room) * SCALE;
      entries.push([tier * rows + row, col, 1]);
      if (row + 1 < rows) entries.push([tier * rows + row + 1, col, -1]);
    }
  }
  let numRows = tiers * rows;
  const rowUpper: number[] = new Array<number>(numRows).fill(0);
  const rowLower: number[] = new Array<number>(numRows).fill(0);
  if (ram) {
    for (let k = 0; k < n; k++) {
      entries.push([numRows, k, 1], [numRows, n + k, 1]);
      rowLower.push(-Infinity);
      rowUpper.push(1);
      numRows += 1;
    }
  }
  const all = intervals.reduce((sum, i) => sum + (diskSeconds[i.model] ?? 0), 0);
  return {
    numCols: cols,
    numRows,
    colCost,
    colLower: new Float64Array(cols),
    colUpper,
    rowLower,
    rowUpper,
    ...compressed(entries, cols),
    constantSeconds: program.forcedSeconds + all,
  };
}

function compressed(
  entries: readonly (readonly [row: number, col: number, value: number])[],
  cols: number,
): { readonly starts: Int32Array; readonly indices: Int32Array; readonly values: Float64Array } {
  const starts = new Int32Array(cols + 1);
  for (const [, col] of entries) starts[col + 1] = (starts[col + 1] ?? 0) + 1;
  for (let c = 0; c < cols; c++) starts[c + 1] = (starts[c + 1] ?? 0) + (starts[c] ?? 0);
  const next = starts.slice();
  const indices = new Int32Array(entries.length);
  const values = new Float64Array(entries.length);
  for (const [row, col, value] of entries) {
    const at = next[col] ?? 0;
    next[col] = at + 1;
    indices[at] = row;
    values[at] = value;
  }
  return { starts, indices, values };
}
