import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A driver that does not answer within this is taken as unknown. */
export const TOOL_DEADLINE_MS = 5000;
const MOST_BYTES = 16 * 1024 * 1024;

export type ToolAnswer =
  | { readonly kind: 'said'; readonly text: string }
  /** It is not installed. */
  | { readonly kind: 'absent' }
  /** It hangs, or it failed: nothing is known. */
  | { readonly kind: 'silent'; readonly text: string };

export type RunTool = (command: string, args: readonly string[], deadlineMs?: number) => Promise<ToolAnswer>;

/** Runs a driver's tool; never throws, and never takes longer than the deadline: what hangs in the driver is left. */
export const runTool: RunTool = (command, args, deadlineMs = TOOL_DEADLINE_MS) =>
  new Promise((resolve) => {
    const child = execFile(
      command,
      [...args],
      { maxBuffer: MOST_BYTES, killSignal: 'SIGKILL', env: { ...process.env, LC_ALL: 'C' } },
      (error, stdout, stderr) => {
        clearTimeout(deadline);
        const code = (error as NodeJS.ErrnoException | null)?.code;
        if (error === null) resolve({ kind: 'said', text: stdout });
        else if (code === 'ENOENT' || code === 'EACCES') resolve({ kind: 'absent' });
        else resolve({ kind: 'silent', text: `${stdout}\n${stderr}` });
      },
    );
    // A process that waits in the kernel is not ended by any signal: the answer does not wait for its end.
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.unref();
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve({ kind: 'silent', text: '' });
    }, deadlineMs);
  });

const RESTART_MS = 5000;

/**
 * A tool that prints again and again by itself: one process instead of one for each reading. It is started anew when it
 * ends, and not at all where it is not installed.
 */
export class ToolStream {
  private child: ChildProcess | undefined;
  private again: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(
    private readonly command: string,
    private readonly args: readonly string[],
    private readonly onLine: (line: string) => void,
  ) {
    this.start();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.again);
    this.child?.kill('SIGKILL');
  }

  private start(): void {
    const child = spawn(this.command, [...this.args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, LC_ALL: 'C' },
    });
    this.child = child;
    let absent = false;
    child.on('error', (error: NodeJS.ErrnoException) => {
      absent = error.code === 'ENOENT' || error.code === 'EACCES';
    });
    createInterface({ input: child.stdout }).on('line', this.onLine);
    child.on('close', () => {
      if (this.stopped || absent) return;
      this.again = setTimeout(() => this.start(), RESTART_MS).unref();
    });
    child.unref();
  }
}
