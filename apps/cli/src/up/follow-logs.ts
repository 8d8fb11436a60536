import { type LogFiles, readable, readFrom, sizeOf } from './log-files.js';

const NAMES = ['event-node', 'postgres', 'projector', 'agent', 'api'];

/** Shows what the processes write, as they write it (`--verbose`). @returns the end of it */
export function followLogs(logs: LogFiles): () => void {
  const positions = new Map(NAMES.map((name) => [name, sizeOf(logs.path(name))]));
  const show = () => {
    for (const name of NAMES) {
      const { text, end } = readFrom(logs.path(name), positions.get(name) ?? 0);
      // A line that is still being written waits for its end.
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      positions.set(name, end - Buffer.byteLength(text) + Buffer.byteLength(whole));
      for (const line of whole.split('\n').filter(Boolean))
        console.log(`${name.padEnd(10)} | ${readable(line)}`);
    }
  };
  const timer = setInterval(show, 150);
  return () => {
    clearInterval(timer);
    show();
  };
}
