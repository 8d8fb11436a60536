import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEventLog } from '#events/connect.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { packageRoot } from '#runtime/process-info.js';
import { agentLineToken } from '#runtime/secrets.js';
import { foundModel, ScriptedAgent } from '../../../apps/api/src/testing/scripted-agent.js';
import { PATH, type Target } from './load.js';

export const COLD_MODELS = 24;
const COLD_LOAD_MS = 150;
const SERVES_WITHIN_MS = 120_000;

export interface BenchStand {
  readonly direct: Target;
  readonly floor: Target;
  readonly berth: Target & { readonly pid: number };
  readonly nodePid: number;
  readonly enginePid: number;
  /** When the load of a cold model was done, by its name; ms since 1970. */
  readonly readyAtMs: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

/** The event node, the api and both other ends, each a process of its own; the worker agent is scripted. */
export async function startBenchStand(self: string, apiExecArgv: readonly string[]): Promise<BenchStand> {
  const children: ChildProcess[] = [];
  const start = async (file: string, args: string[], env = process.env, execArgv: readonly string[] = []) => {
    const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const;
    const child = fork(file, args, { stdio: [...stdio], env, execArgv: [...execArgv] });
    children.push(child);
    const message = await new Promise<unknown>((resolve) => child.once('message', resolve));
    return { pid: child.pid ?? -1, message };
  };
  const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const node = await startEmbeddedNode(undefined, { secure: true });
  const log = openEventLog({ url: node.url, by: 'bench', now: Date.now });
  const engine = await start(self, ['--engine']);
  const enginePort = engine.message as number;
  const floor = await start(self, ['--floor', String(enginePort)]);
  const readyAtMs = new Map<string, number>();
  const cold = Array.from({ length: COLD_MODELS }, (_, n) => `cold-${n}`);
  const agent = await new ScriptedAgent({
    log,
    token: agentLineToken(home),
    models: [foundModel('bench'), ...cold.map((key) => foundModel(key))],
    portOf: () => enginePort,
    // More than the load has connections: what is measured is the way, not the queue.
    slots: 4096,
    whileLoading: async ({ modelKey }) => {
      if (modelKey === 'bench') return;
      await new Promise((resolve) => setTimeout(resolve, COLD_LOAD_MS));
      readyAtMs.set(modelKey, Date.now());
    },
  }).start();
  const env = {
    ...process.env,
    BERTH_HOME: home,
    BERTH_MODELS: home,
    BERTH_PORT: '0',
    EVENTSTORE_URL: node.url,
  };
  const api = await start(join(packageRoot(), 'dist/apps/api/src/main.js'), [], env, apiExecArgv);
  const { details } = api.message as { details: { port: number } };
  const berth = { name: 'berth', port: details.port, pid: api.pid };
  await serves(berth);
  return {
    direct: { name: 'direct', port: enginePort, pid: undefined },
    floor: { name: 'floor', port: floor.message as number, pid: floor.pid },
    berth,
    nodePid: node.pid,
    enginePid: engine.pid,
    readyAtMs,
    stop: async () => {
      // In the order of a real stop: the api's last events need the log.
      for (const child of children.reverse()) await ended(child);
      await agent.stop();
      await log.close();
      await node.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** An api listens before the agent has found it: nothing is measured before the model is there. */
async function serves({ port }: Target): Promise<void> {
  const body = JSON.stringify({ model: 'bench', messages: [] });
  const until = Date.now() + SERVES_WITHIN_MS;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}${PATH}`, { method: 'POST', body });
    const said = await response.text();
    if (response.ok) return;
    if (Date.now() > until) throw new Error(`the api never served its model: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}
