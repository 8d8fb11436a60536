import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest, Agent } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { openEventLog } from '#events/connect.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { packageRoot } from '#runtime/process-info.js';
import { agentLineToken } from '#runtime/secrets.js';
import { foundModel, ScriptedAgent } from '../../apps/api/src/testing/scripted-agent.js';

/**
 * What the front door adds to a call, printed side by side from one run: straight to a simulated engine, through a
 * minimal Node proxy (the floor), and through Berth with recording on. Run: `node dist/test/bench/proxy.js [--seconds 3]`
 */
const PATH = '/v1/chat/completions';
const BODY = JSON.stringify({
  model: 'bench',
  messages: [{ role: 'user', content: 'x'.repeat(800) }],
  max_tokens: 16,
});
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(200) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 16, total_tokens: 216 },
});
const FRAME = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'token' } }] })}\n\n`;
const FRAMES = 200;

interface Target {
  readonly name: string;
  readonly port: number;
  readonly pid: number | undefined;
}

const role = process.argv[2];
if (role === '--engine') runEngine();
else if (role === '--floor') runFloor(Number(process.argv[3]));
else await main();

function runEngine(): void {
  const server = createServer((req, res) => {
    let stream = false;
    req.on('data', (chunk: Buffer) => (stream ||= chunk.includes('"stream":true')));
    req.on('end', () => {
      if (stream) {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        for (let i = 0; i < FRAMES; i += 1) res.write(FRAME);
        res.end('data: [DONE]\n\n');
        return;
      }
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length });
      res.end(ANSWER);
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

/** The least that a proxy in Node can do: pipes in both directions. */
function runFloor(enginePort: number): void {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((req, res) => {
    const options = {
      port: enginePort,
      host: '127.0.0.1',
      path: req.url,
      method: req.method,
      headers: req.headers,
      agent,
    };
    const upstream = httpRequest(options, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    upstream.on('error', () => res.destroy());
    req.pipe(upstream);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

async function main(): Promise<void> {
  const seconds = Number(process.argv[process.argv.indexOf('--seconds') + 1]) || 3;
  const self = fileURLToPath(import.meta.url);
  const children: ChildProcess[] = [];
  const spawn = async (file: string, args: string[], env: NodeJS.ProcessEnv = process.env) => {
    const child = fork(file, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env, execArgv: [] });
    children.push(child);
    const message = await new Promise<unknown>((resolve) => child.once('message', resolve));
    return { child, message };
  };
  const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const node = await startEmbeddedNode();
  const log = openEventLog({ url: node.url, by: 'bench', now: Date.now });
  const engine = await spawn(self, ['--engine']);
  const enginePort = engine.message as number;
  const floor = await spawn(self, ['--floor', String(enginePort)]);
  const agent = await new ScriptedAgent({
    log,
    token: agentLineToken(home),
    models: [foundModel('bench')],
    portOf: () => enginePort,
    // As many slots as the load has connections: what is measured is the way, not the queue.
    slots: 64,
  }).start();
  try {
    const api = await spawn(join(packageRoot(), 'dist/apps/api/src/main.js'), [], {
      ...process.env,
      BERTH_HOME: home,
      BERTH_MODELS: home,
      BERTH_PORT: '0',
      EVENTSTORE_URL: node.url,
      BERTH_LOG: 'error',
    });
    const { details } = api.message as { details: { port: number } };
    const targets: Target[] = [
      { name: 'direct', port: enginePort, pid: undefined },
      { name: 'floor', port: floor.message as number, pid: floor.child.pid },
      { name: 'berth', port: details.port, pid: api.child.pid },
    ];
    process.stdout.write(
      `${cpus().length} cores, Node ${process.version}, ${seconds} s each, body ${BODY.length} B\n`,
    );
    for (const connections of [1, 16]) await compare(targets, connections, seconds, false);
    for (const connections of [1, 16]) await compare(targets, connections, seconds, true);
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await agent.stop();
    await log.close();
    await node.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

async function compare(
  targets: readonly Target[],
  connections: number,
  seconds: number,
  stream: boolean,
): Promise<void> {
  const what = stream ? `${FRAMES} frames streamed in a burst` : 'JSON';
  process.stdout.write(`\n${what}, ${connections} connection${connections === 1 ? '' : 's'}\n`);
  process.stdout.write('             p50 ms   p99 ms   per second   proxy CPU ms per call   added p50 ms\n');
  const body = stream ? BODY.replace('"max_tokens"', '"stream":true,"max_tokens"') : BODY;
  let direct: number | undefined;
  for (const target of targets) {
    await load(target, connections, 0.5, body);
    const before = cpuMs(target.pid);
    const { latencies, elapsedMs } = await load(target, connections, seconds, body);
    const cpu = target.pid === undefined ? undefined : (cpuMs(target.pid) - before) / latencies.length;
    latencies.sort((a, b) => a - b);
    const at = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? NaN;
    direct ??= at(0.5);
    const row = [
      target.name.padEnd(10),
      at(0.5).toFixed(3).padStart(9),
      at(0.99).toFixed(3).padStart(9),
      ((latencies.length / elapsedMs) * 1000).toFixed(0).padStart(12),
      (cpu === undefined ? '-' : cpu.toFixed(3)).padStart(24),
      (at(0.5) - direct).toFixed(3).padStart(15),
    ];
    process.stdout.write(`${row.join('')}\n`);
  }
}

async function load(
  target: Target,
  connections: number,
  seconds: number,
  body: string,
): Promise<{ latencies: number[]; elapsedMs: number }> {
  const pool = new Pool(`http://127.0.0.1:${target.port}`, { connections, pipelining: 1 });
  const latencies: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const headers = { host: `127.0.0.1:${target.port}`, 'content-type': 'application/json' };
  const one = async () => {
    while (performance.now() < until) {
      const sentAt = performance.now();
      const { statusCode, body: answer } = await pool.request({ path: PATH, method: 'POST', headers, body });
      const text = await answer.text();
      if (statusCode !== 200) throw new Error(`${target.name} answered ${statusCode}: ${text.slice(0, 300)}`);
      latencies.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  const elapsedMs = performance.now() - startedAt;
  await pool.close();
  return { latencies, elapsedMs };
}

/** User and system time of a process, in ms (Linux counts in ticks of 10 ms). */
function cpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
