import { KIB, MIB } from '#domain/units.js';

/** Bodies that come in one read need no buffer of their own; those up to here are not worth keeping one. */
export const SMALLEST_KEPT_BYTES = 64 * KIB;
const LARGEST_KEPT_BYTES = 16 * MIB;
const MOST_KEPT_BYTES = 32 * MIB;
/** What nobody has used for so long goes. */
const KEPT_MS = 10_000;

/**
 * Buffers for large bodies, used again. One made for every call is memory outside of the collector's view that weighs on
 * it all the same: a full collection for every few calls, which costs more than the bytes.
 */
export class BodyBuffers {
  /** By size, which is a power of two. */
  readonly #kept = new Map<number, Buffer[]>();
  #keptBytes = 0;
  #usedSince = false;
  #sweep: NodeJS.Timeout | undefined;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** A buffer of so many bytes at least, with whatever was in it before. */
  take(bytes: number): Buffer {
    const size = sizeFor(bytes);
    const kept = this.#kept.get(size)?.pop();
    this.#usedSince = true;
    if (!kept) return Buffer.allocUnsafeSlow(size);
    this.#keptBytes -= size;
    return kept;
  }

  /** Nothing reads it any more, the kernel included. */
  giveBack(buffer: Buffer): void {
    const size = buffer.length;
    if (size > LARGEST_KEPT_BYTES || this.#keptBytes + size > MOST_KEPT_BYTES) return;
    const ofSize = this.#kept.get(size);
    if (ofSize) ofSize.push(buffer);
    else this.#kept.set(size, [buffer]);
    this.#keptBytes += size;
    this.#sweep ??= setInterval(() => this.#dropIdle(), KEPT_MS).unref();
  }

  #dropIdle(): void {
    if (this.#usedSince) {
      this.#usedSince = false;
      return;
    }
    this.#kept.clear();
    this.#keptBytes = 0;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

const sizeFor = (bytes: number): number => {
  let size = SMALLEST_KEPT_BYTES;
  while (size < bytes) size *= 2;
  return size;
};
