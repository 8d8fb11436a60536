/**
 * How long a start takes: `npm start` over a home that has been started before, from the command to the printed address, to the
 * first answer of a model that has to be loaded, and to the first answer of management.
 *
 *   node dist/test/bench/start.js [--starts 5]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { packageRoot } from '#runtime/process-info.js';
import { cleanEnv, removeFolder, tempFolder } from '../support/stack.js';

const { values } = parseArgs({ options: { starts: { type: 'string', default: '5' } } });
const starts = Number(values.starts);
if (!Number.isInteger(starts) || starts < 1) throw new Error('--starts is a whole number of at least 1');

interface Start {
  readonly addressSeconds: number;
  readonly chatSeconds: number;
  readonly adminSeconds: number;
}

async function start(home: string): Promise<Start> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const npm = spawn('npm', ['start', '--', '--home', home, '--port', '0'], {
    cwd: packageRoot(),
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: cleanEnv(home),
  });
  const ended = once(npm, 'exit');
  try {
    let output = '';
    const { url, model } = await new Promise<{ url: string; model: string }>((resolve, reject) => {
      npm.once('exit', (code) => reject(new Error(`npm start ended with ${String(code)}:\n${output}`)));
      npm.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const found = /curl (http:\/\/[\w.:]+)\/v1\S* .*"model":"([^"]+)"/.exec(output);
        if (found?.[1] && found[2]) resolve({ url: found[1], model: found[2] });
      });
    });
    const addressSeconds = seconds();
    const asked = async (path: string, body?: unknown) => {
      const answer = await fetch(url + path, {
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      });
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
      return seconds();
    };
    const messages = [{ role: 'user', content: 'Hello' }];
    const [chatSeconds, adminSeconds] = await Promise.all([
      asked('/v1/chat/completions', { model, messages, max_tokens: 8 }),
      asked('/admin/residents'),
    ]);
    return { addressSeconds, chatSeconds, adminSeconds };
  } finally {
    if (npm.pid !== undefined && npm.exitCode === null) process.kill(-npm.pid, 'SIGINT');
    await ended;
  }
}

const home = tempFolder();
try {
  console.log('first start (the home is made) …');
  await start(home);
  console.log('  start   load   address s   first chat s   first admin answer s');
  const all: Start[] = [];
  for (let n = 1; n <= starts; n += 1) {
    const load = (loadavg()[0] ?? 0).toFixed(1);
    const one = await start(home);
    all.push(one);
    console.log(
      `  ${String(n).padStart(5)} ${load.padStart(6)} ${one.addressSeconds.toFixed(2).padStart(11)} ${one.chatSeconds.toFixed(2).padStart(14)} ${one.adminSeconds.toFixed(2).padStart(22)}`,
    );
  }
  const median = (of: (s: Start) => number) =>
    all.map(of).sort((a, b) => a - b)[Math.floor((all.length - 1) / 2)] ?? 0;
  console.log(
    ` median        ${median((s) => s.addressSeconds)
      .toFixed(2)
      .padStart(11)} ${median((s) => s.chatSeconds)
      .toFixed(2)
      .padStart(14)} ${median((s) => s.adminSeconds)
      .toFixed(2)
      .padStart(22)}`,
  );
} finally {
  removeFolder(home);
}
