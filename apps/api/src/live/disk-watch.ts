import { statfs } from 'node:fs/promises';

const LOOK_EVERY_MS = 10_000;

/** Looks now and then how much room the disk of a folder has left: asking it for every question could take long. */
export class DiskWatch {
  readonly #dir: string;
  readonly #timer: NodeJS.Timeout;
  #freeBytes: number | undefined;

  constructor(dir: string, everyMs = LOOK_EVERY_MS) {
    this.#dir = dir;
    this.#timer = setInterval(() => void this.#look(), everyMs).unref();
    void this.#look();
  }

  /** What this user may still write; undefined while it is not known. */
  get freeBytes(): number | undefined {
    return this.#freeBytes;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    try {
      const { bavail, bsize } = await statfs(this.#dir);
      this.#freeBytes = bavail * bsize;
    } catch {
      // Some file systems do not say: then nothing is said here.
      this.#freeBytes = undefined;
    }
  }
}
