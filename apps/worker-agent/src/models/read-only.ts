import { close, open, read } from 'node:fs';

/** A file by its descriptor: for ten thousand of them, a handle with promises of its own costs more than the reading. */
export class ReadOnly {
  private constructor(private readonly descriptor: number) {}

  static open(path: string): Promise<ReadOnly> {
    return new Promise((resolve, reject) => {
      open(path, 'r', (error, descriptor) => (error ? reject(error) : resolve(new ReadOnly(descriptor))));
    });
  }

  /** @returns the bytes that were there, in the buffer that was given. */
  read(buffer: Buffer, length: number, at: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      read(this.descriptor, buffer, 0, length, at, (error, count) =>
        error ? reject(error) : resolve(buffer.subarray(0, count)),
      );
    });
  }

  close(): void {
    // Opened for reading: nothing is lost when the system objects.
    close(this.descriptor, () => undefined);
  }
}
