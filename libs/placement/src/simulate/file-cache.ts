/** The operating system's page cache as whole files, the least recently read out first. */
export class FileCache {
  /** In order of their last reading. */
  readonly #files = new Map<number, number>();
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  has(file: number): boolean {
    return this.#files.has(file);
  }

  /** Reads a file, which is then in it if it fits at all. @returns whether it was in it before. */
  touch(file: number, bytes: number): boolean {
    const had = this.#files.delete(file);
    if (had) this.#bytes -= bytes;
    if (bytes > this.#limitBytes) return false;
    this.#files.set(file, bytes);
    this.#bytes += bytes;
    for (const [oldest, size] of this.#files) {
      if (this.#bytes <= this.#limitBytes) break;
      this.#files.delete(oldest);
      this.#bytes -= size;
    }
    return had;
  }
}
