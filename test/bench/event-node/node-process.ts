import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface MeasuredNode {
  /** With the credential, when there is one. */
  readonly url: string;
  /** Processor time of the node's process so far, in microseconds; undefined where the system does not tell. */
  cpuMicros(): number | undefined;
  /** Memory of the process in bytes; undefined where the system does not tell. */
  residentBytes(): number | undefined;
  stop(): Promise<void>;
}

/** Linux counts in hundredths of a second, whatever the kernel's own clock is. */
const MICROS_PER_TICK = 10_000;

export function cpuMicrosOf(pid: number): number | undefined {
  try {
    // The name of the program stands in brackets and may hold blanks; what follows it is counted from there.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * MICROS_PER_TICK;
  } catch {
    return undefined;
  }
}

export function residentBytesOf(pid: number): number | undefined {
  try {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return line ? Number(line[1]) * 1024 : undefined;
  } catch {
    return undefined;
  }
}

/** The embedded node in a process of its own, over `dataDir` or a temporary folder. */
export async function startMeasuredNode(
  options: { readonly insecure?: boolean; readonly dataDir?: string } = {},
): Promise<MeasuredNode> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'bench-event-node-'));
  const main = new URL('../../../apps/event-node/src/main.js', import.meta.url);
  const args = ['--port', '0', '--data', dataDir, ...(options.insecure ? ['--insecure'] : [])];
  const child = await ready(fork(main, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
  return measured(child, readFileSync(join(dataDir, 'connection'), 'utf8').trim(), () => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  });
}

/** A server that answers the same calls from memory: what is left is the price of client and protocol. */
export async function startMemoryNode(): Promise<MeasuredNode> {
  const main = new URL('./memory-node.js', import.meta.url);
  const child = fork(main, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve(Number(message)));
    child.once('exit', (code) => reject(new Error(`the memory node ended with ${code}`)));
  });
  return measured(child, `esdb://127.0.0.1:${port}?tls=false`, () => undefined);
}

function measured(child: ChildProcess, url: string, removed: () => void): MeasuredNode {
  const pid = child.pid ?? 0;
  return {
    url,
    cpuMicros: () => cpuMicrosOf(pid),
    residentBytes: () => residentBytesOf(pid),
    stop: async () => {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
      removed();
    },
  };
}

function ready(child: ChildProcess): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    child.once('message', (message: { berth: string; message?: string }) => {
      if (message.berth === 'ready') resolve(child);
      else reject(new Error(message.message));
    });
    child.once('exit', (code) => reject(new Error(`the event node ended with ${code}`)));
  });
}
