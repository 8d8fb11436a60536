import { SingleBar } from 'cli-progress';
import { formatBytes, formatSeconds } from '#domain/units.js';

export interface Progress {
  start(totalBytes: number): void;
  at(bytes: number, file: string): void;
  stop(): void;
}

/** A bar on a terminal, else a line at every tenth. */
export function progressOn(stream: NodeJS.WriteStream, now: () => number = Date.now): Progress {
  return stream.isTTY ? bar(stream, now) : lines((text) => stream.write(`${text}\n`), now);
}

function bar(stream: NodeJS.WriteStream, now: () => number): Progress {
  let startMs = 0;
  let firstBytes: number | undefined;
  const single = new SingleBar({
    stream,
    hideCursor: true,
    clearOnComplete: false,
    format: '{bar} {percentage}%  {done} of {all}  {rate}  {left}  {file}',
    barsize: 24,
  });
  let totalBytes = 0;
  return {
    start: (total) => {
      totalBytes = total;
      startMs = now();
      single.start(total, 0, { done: '0 B', all: formatBytes(total), rate: '', left: '', file: '' });
    },
    at: (bytes, file) => {
      firstBytes ??= bytes;
      const { rate, left } = pace(bytes - firstBytes, totalBytes - bytes, now() - startMs);
      single.update(bytes, { done: formatBytes(bytes), rate, left, file: file.split('/').at(-1) ?? file });
    },
    stop: () => single.stop(),
  };
}

export function lines(print: (line: string) => void, now: () => number): Progress {
  let totalBytes = 0;
  let told = -1;
  let firstBytes: number | undefined;
  let startMs = 0;
  return {
    start: (total) => {
      totalBytes = total;
      startMs = now();
    },
    at: (bytes, file) => {
      firstBytes ??= bytes;
      const tenth = totalBytes === 0 ? 10 : Math.floor((bytes / totalBytes) * 10);
      if (tenth <= told) return;
      told = tenth;
      const { rate, left } = pace(bytes - firstBytes, totalBytes - bytes, now() - startMs);
      const rest = [rate, left].filter((t) => t !== '').join(', ');
      print(
        `${tenth * 10} %: ${formatBytes(bytes)} of ${formatBytes(totalBytes)} (${file})${rest === '' ? '' : `, ${rest}`}`,
      );
    },
    stop: () => undefined,
  };
}

function pace(fetchedBytes: number, leftBytes: number, ms: number): { rate: string; left: string } {
  if (ms < 500 || fetchedBytes <= 0) return { rate: '', left: '' };
  const perSecond = Math.round((fetchedBytes * 1000) / ms);
  return {
    rate: `${formatBytes(perSecond)}/s`,
    left: leftBytes > 0 ? `${formatSeconds(leftBytes / perSecond)} left` : '',
  };
}
