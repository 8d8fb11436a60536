import { parentPort, workerData } from 'node:worker_threads';
import { LOWEST, lowerThread } from '#runtime/priority.js';

/** Thread that reads a buffer of its own from end to end, again and again, and says how fast. */
export interface BandwidthWork {
  readonly bytes: number;
  /** It reads for so long once all are told to begin. */
  readonly milliseconds: number;
}
export type BandwidthSaid =
  { readonly kind: 'filled' } | { readonly kind: 'read'; readonly bytesPerSecond: number };

const { bytes, milliseconds } = workerData as BandwidthWork;
const port = parentPort;
lowerThread(LOWEST);

const words = new Float64Array(Math.floor(bytes / 8));
// Every page is written once, so that each is real memory and not the one page of zeroes.
for (let i = 0; i < words.length; i++) words[i] = i;
port?.postMessage({ kind: 'filled' } satisfies BandwidthSaid);

/** One reading of a part: eight sums at once, so that memory is waited for and not the adder. */
function sweep(from: number, to: number): number {
  let [a, b, c, d, e, f, g, h] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let i = from; i + 8 <= to; i += 8) {
    a += words[i] ?? 0;
    b += words[i + 1] ?? 0;
    c += words[i + 2] ?? 0;
    d += words[i + 3] ?? 0;
    e += words[i + 4] ?? 0;
    f += words[i + 5] ?? 0;
    g += words[i + 6] ?? 0;
    h += words[i + 7] ?? 0;
  }
  return a + b + c + d + e + f + g + h;
}

const PART = 512 * 1024;
port?.once('message', () => {
  const started = performance.now();
  let read = 0;
  let sum = 0;
  for (
    let at = 0;
    performance.now() - started < milliseconds;
    at = at + PART < words.length ? at + PART : 0
  ) {
    const to = Math.min(at + PART, words.length);
    sum += sweep(at, to);
    read += (to - at) * 8;
  }
  const seconds = (performance.now() - started) / 1000;
  // The sum is looked at, so that the reading is not optimised away.
  port.postMessage({
    kind: 'read',
    bytesPerSecond: Number.isNaN(sum) ? 0 : read / seconds,
  } satisfies BandwidthSaid);
  port.close();
});
