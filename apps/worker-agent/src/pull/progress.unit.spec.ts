import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { progressOn } from './progress.js';

/** A stream that says whether it is a terminal, and what it was told. */
function terminal(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), {
    isTTY,
    columns: 120,
    cursorTo: () => true,
    clearLine: () => true,
    moveCursor: () => true,
  });
  return {
    stream: stream as unknown as NodeJS.WriteStream,
    text: () => String(stream.read() ?? ''),
  };
}

function pullOf(isTTY: boolean): string {
  const { stream, text } = terminal(isTTY);
  let ms = 0;
  const progress = progressOn(stream, () => ms);
  progress.start(100 * MIB);
  for (const done of [0, 25, 50, 100]) {
    ms += 1000;
    progress.at(done * MIB, 'weights/ship-Q8_0.gguf');
  }
  progress.stop();
  return text();
}

describe('the progress of a pull', () => {
  it('is a bar on a terminal, with the bytes, the rate, the time left and the file', () => {
    const said = pullOf(true);
    expect(said).toMatch(/[█▓#=]+/u);
    expect(said).toContain('100%  100.0 MiB of 100.0 MiB  25.0 MiB/s');
    expect(said).toContain('ship-Q8_0.gguf');
  });

  it('is a line at a tenth elsewhere, and draws nothing', () => {
    expect(pullOf(false).trim().split('\n')).toEqual([
      '0 %: 0 B of 100.0 MiB (weights/ship-Q8_0.gguf)',
      '20 %: 25.0 MiB of 100.0 MiB (weights/ship-Q8_0.gguf), 12.5 MiB/s, 6.0 s left',
      '50 %: 50.0 MiB of 100.0 MiB (weights/ship-Q8_0.gguf), 16.7 MiB/s, 3.0 s left',
      '100 %: 100.0 MiB of 100.0 MiB (weights/ship-Q8_0.gguf), 25.0 MiB/s',
    ]);
  });
});
