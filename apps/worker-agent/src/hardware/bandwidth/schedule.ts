import type { Logger } from '#runtime/logger.js';
import type { MemoryBandwidth } from '#domain/events/worker-events.js';
import { bufferBytes, measureBandwidth } from './measure.js';

const EARLIEST_MS = 10_000;
const SPREAD_MS = 110_000;
const EVERY_MS = 3_600_000;
/** A measurement is better when it is so much above the best: what is within it is noise. */
const BETTER_BY = 1.02;

export interface BandwidthOptions {
  readonly cores: () => number;
  readonly lastCacheBytes: () => number | undefined;
  readonly availableBytes: () => number;
  /** The best that the log knows. */
  readonly best: () => MemoryBandwidth | undefined;
  /** Called only with what is better. */
  readonly onBetter: (bandwidth: MemoryBandwidth) => Promise<void>;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** From 0 to 1; when in the first two minutes it begins. Agents that start together do not measure together. */
  readonly random?: () => number;
  /** In place of a measurement, for tests. */
  readonly measure?: typeof measureBandwidth;
}

/** The better of each rate; undefined when neither is better than what is known. */
export function betterOf(
  best: MemoryBandwidth | undefined,
  now: MemoryBandwidth,
): MemoryBandwidth | undefined {
  if (best === undefined) return now;
  const before = best.byCoresGBps ?? [];
  const after = now.byCoresGBps ?? [];
  const isBetter = (rate: number, known: number | undefined): boolean => rate > (known ?? 0) * BETTER_BY;
  const better =
    isBetter(now.allGBps, best.allGBps) ||
    isBetter(now.oneCoreGBps, best.oneCoreGBps) ||
    after.some((rate, i) => isBetter(rate, before[i]));
  if (!better) return undefined;
  const curve =
    after.length < before.length ? before : after.map((rate, i) => Math.max(rate, before[i] ?? 0));
  return {
    allGBps: Math.max(best.allGBps, now.allGBps),
    oneCoreGBps: Math.max(best.oneCoreGBps, now.oneCoreGBps),
    ...(curve.length > 0 ? { byCoresGBps: rising(curve) } : {}),
  };
}

/** The best of several measurements, each risen to what fewer cores reached. */
function rising(curve: readonly number[]): readonly number[] {
  let most = 0;
  return curve.map((rate) => (most = Math.max(most, rate)));
}

/** Measures in the background: 10 to 120 s after the start, then hourly. Other work only makes it slower: the best is kept. */
export function scheduleBandwidth(o: BandwidthOptions): { stop(): Promise<void> } {
  let stopped = false;
  let timer: NodeJS.Timeout;
  let running: Promise<void> = Promise.resolve();
  const measure = async (): Promise<void> => {
    const bytes = bufferBytes(o.lastCacheBytes(), o.availableBytes());
    if (bytes === undefined) {
      o.log.info('too little memory is free to measure its rate; it is tried again in an hour');
      return;
    }
    const better = betterOf(o.best(), await (o.measure ?? measureBandwidth)(o.cores(), bytes));
    if (better !== undefined && !stopped) await o.onBetter(better);
  };
  const later = (delayMs: number): void => {
    timer = setTimeout(() => {
      running = measure()
        .catch((error: unknown) => o.log.warn({ err: error }, 'the rate of memory could not be measured'))
        .then(() => {
          if (!stopped) later(EVERY_MS);
        });
    }, delayMs).unref();
  };
  later(EARLIEST_MS + SPREAD_MS * (o.random ?? Math.random)());
  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
