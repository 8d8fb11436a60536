/** Lets so many go on at once; the others wait in the order in which they came. */
export class Gate {
  private readonly waiting: (() => void)[] = [];
  private first = 0;

  constructor(private free: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      this.next();
    }
  }

  private next(): void {
    const resolve = this.waiting[this.first];
    if (resolve === undefined) {
      this.free += 1;
      this.waiting.length = 0;
      this.first = 0;
      return;
    }
    this.first += 1;
    resolve();
  }
}
