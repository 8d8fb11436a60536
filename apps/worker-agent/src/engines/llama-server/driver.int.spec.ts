import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { deviceId } from '#domain/ids.js';
import { createLogger } from '#runtime/logger.js';
import { isAlive } from '#runtime/process-info.js';
import { PortTaken } from '../../ports.js';
import type { Timing } from '../readiness.js';
import { findProgram } from '../spawn.js';
import { EngineBench, eventually } from '../test-bench.js';
import { LlamaServerDriver } from './driver.js';
import { findServers } from './discover.js';
import { fakeServerScript, servesBy, writeProgram } from './fake-server.js';
import { OLD_HELP, PRESENT_HELP } from './help-samples.js';

const folder = mkdtempSync(join(tmpdir(), 'berth llama-server '));
const bench = new EngineBench();
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await bench.close();
});

let next = 1;
const program = writeProgram;

const serverScript = (help: string, serves?: string) =>
  fakeServerScript({ help, ...(serves === undefined ? {} : { serves }) });

const path = (...parts: string[]) => join(folder, String(next++), ...parts);

function driverFor(named: string | undefined, said: string[] = []) {
  const log = createLogger('test');
  log.level = 'silent';
  const tell = (_fields: unknown, message: string) => said.push(message);
  const home = path('home');
  return new LlamaServerDriver({
    home,
    log: Object.assign(Object.create(log) as typeof log, { warn: tell, info: tell }),
    engineKey: bench.key,
    search: { path: '', opt: path('no-opt') },
    ...(named === undefined ? {} : { llamaServerBin: named }),
  });
}

describe('the search for a llama-server', () => {
  it('goes from the setting over the home and PATH to /opt, and passes over what cannot be run', () => {
    const root = path();
    const named = program(join(root, 'named'), 'true');
    const own = program(join(root, 'home', 'engines', 'bin', 'llama-server'), 'true');
    const onPath = program(join(root, 'path', 'llama-server'), 'true');
    const inOpt = program(join(root, 'opt', 'llama.cpp', 'bin', 'llama-server'), 'true');
    const plain = join(root, 'plain', 'llama-server');
    mkdirSync(dirname(plain));
    writeFileSync(plain, 'no program', { mode: 0o644 });
    const found = findServers({
      named,
      home: join(root, 'home'),
      path: `${join(root, 'plain')}:${join(root, 'path')}`,
      opt: join(root, 'opt'),
    });
    expect(found).toEqual([named, own, onPath, inOpt]);
  });
});

describe('the probe of a llama-server', () => {
  it('tells version, build and abilities, and reads the help of one binary once', async () => {
    const binary = program(path('llama-server'), serverScript(PRESENT_HELP));
    const driver = driverFor(binary);
    expect(await driver.probe()).toMatchObject({
      kind: 'llama-server',
      version: '4321',
      build: expect.stringMatching(/^80fb11a-[0-9a-f]{8}$/) as string,
      capabilities: expect.arrayContaining(['chat', 'tools', 'moe-split']) as string[],
    });
    await driver.probe();
    const asked = readFileSync(`${binary}.asked`, 'utf8').trim().split('\n');
    expect(asked.filter((arg) => arg === '--help')).toHaveLength(1);
    expect(asked.filter((arg) => arg === '--version')).toHaveLength(2);
  });

  it('tells which routes of other protocols stand in the program, or in its library', async () => {
    const capabilities = async (more: string) =>
      (await driverFor(program(path('llama-server'), `${serverScript(PRESENT_HELP)}\n# ${more}`)).probe())
        ?.capabilities;
    expect(await capabilities('')).not.toContain('messages');
    expect(await capabilities('/v1/messages')).toContain('messages');
    const own = program(path('llama-server'), serverScript(PRESENT_HELP));
    // Across two reads of a megabyte.
    const library = Buffer.alloc(2 * 1024 * 1024);
    library.write('/v1/responses', 1024 * 1024 - 5);
    const alone = await driverFor(own).probe();
    writeFileSync(join(dirname(own), 'libllama-server.so.1'), library);
    const whole = await driverFor(own).probe();
    expect(whole?.capabilities).toContain('responses');
    // What a library does is what the build does.
    expect(whole?.build).not.toBe(alone?.build);
  });

  it('is made again where another program stands at its place, and only there', async () => {
    const binary = program(path('llama-server'), serverScript(PRESENT_HELP));
    const driver = driverFor(binary);
    const before = await driver.probe();
    expect(driver.hasChanged()).toBe(false);
    renameSync(binary, `${binary}.away`);
    expect(driver.hasChanged()).toBe(false);
    renameSync(`${binary}.away`, binary);
    expect(driver.hasChanged()).toBe(false);

    const help = PRESENT_HELP.replaceAll('--no-ui', '--no-webui');
    program(binary, fakeServerScript({ help, version: '5000 (99aabbc)', serves: 'exec sleep 600' }));
    expect(driver.hasChanged()).toBe(true);
    // A launch asks by itself: the flags that it gives are those of the program that it starts.
    const { file } = await bench.model('chat-a');
    const engine = await driver.launch(bench.plan(file));
    await engine.stop();
    expect(engine.engine.version).toBe('5000');
    expect(engine.engine.build).not.toBe(before?.build);
    expect(engine.arguments).toContain('--no-webui');
    expect(engine.arguments).not.toContain('--no-ui');

    writeFileSync(join(dirname(binary), 'libllama-server-impl.so'), 'one');
    await driver.probe();
    writeFileSync(join(dirname(binary), 'libllama-server-impl.so'), 'other');
    expect(driver.hasChanged()).toBe(true);
  });

  it('finds a program that was installed since', async () => {
    const binary = path('llama-server');
    const driver = driverFor(binary);
    expect([await driver.probe(), driver.hasChanged()]).toEqual([undefined, false]);
    program(binary, serverScript(PRESENT_HELP));
    expect(driver.hasChanged()).toBe(true);
    expect(await driver.probe()).toMatchObject({ version: '4321' });
  });

  it.each([
    ['fails', 'echo "cannot open libcuda.so.1" >&2; exit 127', /libcuda/],
    ['says no version', 'echo hello', /does not say a version/],
    ['lacks a flag that plans need', serverScript('-m, --model FNAME   model'), /does not list .*--parallel/],
    [
      'takes its key on the command line only',
      serverScript(OLD_HELP.replace(/^--api-key-file.*$/m, '--api-key KEY   the key')),
      /command line only/,
    ],
  ])('passes over a binary that %s, and says so', async (_what, script, reason) => {
    const said: string[] = [];
    const driver = driverFor(program(path('llama-server'), script), said);
    expect(await driver.probe()).toBeUndefined();
    expect(said.join('\n')).toMatch(reason);
    const { file } = await bench.model('chat-a');
    await expect(driver.launch(bench.plan(file))).rejects.toThrow('no llama-server');
  });

  it('says that a named binary is none', async () => {
    const said: string[] = [];
    expect(await driverFor('/nowhere/llama-server', said).probe()).toBeUndefined();
    expect(said.join('\n')).toContain('/nowhere/llama-server');
  });

  it('asks the oracle beside it, and believes no oracle that fails', async () => {
    const { file } = await bench.model('chat-a');
    const binary = program(path('llama-server'), serverScript(PRESENT_HELP));
    const help = `${PRESENT_HELP}\n-fitp, --fit-print [on|off]   print the required memory`;
    program(join(dirname(binary), 'llama-fit-params'), serverScript(help, 'echo Host 200 64 28'));
    expect(await driverFor(binary).project(bench.plan(file))).toMatchObject({
      byDevice: [{ deviceId: 'ram', kvBytes: 64 * 1024 * 1024 }],
    });
    program(
      join(dirname(binary), 'llama-fit-params'),
      serverScript(help, 'echo Host 200 64 28; kill -ABRT $$'),
    );
    expect(await driverFor(binary).project(bench.plan(file))).toBeUndefined();
  });
});

describe('a server that does not come up', () => {
  it('is told by its own words, and leaves no process behind', async () => {
    const { file } = await bench.model('chat-a');
    const words =
      'echo "0.00.001.000 E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 9" >&2; exit 1';
    const driver = driverFor(program(path('llama-server'), serverScript(PRESENT_HELP, words)));
    const engine = await driver.launch(bench.plan(file));
    await expect(engine.ready(() => undefined)).rejects.toMatchObject({ failureClass: 'out-of-memory' });
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });

  it('is ended with what it forked', async () => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    program(
      binary,
      serverScript(PRESENT_HELP, 'sleep 600 & echo $! > "$0.grandchild"; trap "" TERM; wait; wait'),
    );
    const log = createLogger('test');
    log.level = 'silent';
    const driver = new LlamaServerDriver({
      home: path('home'),
      log,
      engineKey: bench.key,
      llamaServerBin: binary,
      timing: { stallMs: 300, killAfterMs: 200 },
    });
    const engine = await driver.launch(bench.plan(file));
    await expect(engine.ready(() => undefined)).rejects.toMatchObject({ failureClass: 'stalled' });
    const grandchild = Number(readFileSync(`${binary}.grandchild`, 'utf8'));
    expect(grandchild).toBeGreaterThan(0);
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
    expect(isAlive(grandchild)).toBe(false);
  });
});

/** As `driverFor`, with little patience. */
function impatient(binary: string, timing: Timing) {
  const log = createLogger('test');
  log.level = 'silent';
  return new LlamaServerDriver({
    home: path('home'),
    log,
    engineKey: bench.key,
    llamaServerBin: binary,
    timing,
  });
}

describe('an engine that misbehaves', () => {
  it('is known by its words when it could not have its port', async () => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    const words = `echo "srv start: couldn't bind HTTP server socket" >&2; exit 1`;
    program(binary, serverScript(PRESENT_HELP, words));
    const driver = impatient(binary, { stallMs: 10_000, killAfterMs: 2000 });
    const engine = await driver.launch(bench.plan(file));
    await expect(engine.ready(() => undefined)).rejects.toBeInstanceOf(PortTaken);
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });

  it('is stalled when it takes the question for its health and never answers', async () => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    const listen = servesBy(
      'require("net").createServer(() => {}).listen(Number(word("--port")), "127.0.0.1")',
    );
    program(binary, serverScript(PRESENT_HELP, listen));
    const driver = impatient(binary, { stallMs: 3000, killAfterMs: 2000 });
    const engine = await driver.launch(bench.plan(file));
    await expect(engine.ready(() => undefined)).rejects.toMatchObject({ failureClass: 'stalled' });
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });

  it('is stopped and failed when it computes on the CPU what was planned for an accelerator', async () => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    const serves = servesBy(`
console.error("0.00.020.000 I load_tensors:   CPU_Mapped model buffer size =   200.14 MiB");
require("http").createServer((req, res) => res.end(JSON.stringify({ model_path: word("-m") })))
  .listen(Number(word("--port")), "127.0.0.1");`);
    program(binary, serverScript(PRESENT_HELP, serves));
    const driver = impatient(binary, { stallMs: 30_000, killAfterMs: 2000 });
    const onCard = { rung: 'gpu-only', gpuLayers: 33, devices: [deviceId('GPU-a')] } as const;
    const engine = await driver.launch(bench.plan(file, onCard));
    await expect(engine.ready(() => undefined)).rejects.toMatchObject({
      failureClass: 'incompatible-engine',
      message: expect.stringContaining('33 layers were to be on an accelerator') as string,
    });
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
    // The same program is no fault where the CPU is what was planned.
    const onCpu = await driver.launch(bench.plan(file));
    await onCpu.ready(() => undefined);
    await onCpu.stop();
  });

  it.each([
    ['in its environment', PRESENT_HELP, true],
    [
      'in a file of the owner where it reads no variable',
      OLD_HELP.replaceAll('LLAMA_API_KEY', 'NONE'),
      false,
    ],
  ])('is given its key %s, and never on its command line', async (_how, help, byEnvironment) => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    program(binary, serverScript(help, 'env > "$0.env.part"; mv "$0.env.part" "$0.env"; exec sleep 600'));
    const driver = driverFor(binary);
    const plan = bench.plan(file);
    const key = bench.key(plan.residentId);
    const engine = await driver.launch(plan);
    try {
      await eventually('it has told its environment', () => existsSync(`${binary}.env`));
      const told = readFileSync(`${binary}.env`, 'utf8');
      if (byEnvironment) expect(told).toContain(`LLAMA_API_KEY=${key}\n`);
      else expect(told).not.toContain(key);
      expect(engine.arguments.join(' ')).not.toContain(key);
      const keyFile = engine.arguments[engine.arguments.indexOf('--api-key-file') + 1] ?? '';
      if (byEnvironment) expect(engine.arguments).not.toContain('--api-key-file');
      else {
        expect(readFileSync(keyFile, 'utf8').trim()).toBe(key);
        expect(statSync(keyFile).mode & 0o777).toBe(0o600);
      }
    } finally {
      await engine.stop();
    }
  });

  it('is asked to end by SIGTERM, and ends in order when it does', async () => {
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    const tells = `trap 'echo > "$0.ended"; exit 0' TERM; echo > "$0.runs"; while :; do sleep 0.05; done`;
    program(binary, serverScript(PRESENT_HELP, tells));
    const driver = impatient(binary, { stallMs: 60_000, killAfterMs: 60_000 });
    const engine = await driver.launch(bench.plan(file));
    await eventually('it runs', () => existsSync(`${binary}.runs`));
    await engine.stop();
    expect(existsSync(`${binary}.ended`)).toBe(true);
    expect(await engine.exited).toEqual({ code: 0 });
  });

  it('takes with it what left its process group and holds memory', async () => {
    const setsid = findProgram('setsid', process.env['PATH']);
    if (setsid === undefined) throw new Error('setsid of util-linux is needed');
    const { file } = await bench.model('chat-a');
    const binary = path('llama-server');
    const forks = `"${setsid}" sh -c 'echo $$ > "$1.grandchild"; exec sleep 600' - "$0" & exec sleep 600`;
    program(binary, serverScript(PRESENT_HELP, forks));
    const driver = impatient(binary, { stallMs: 60_000, killAfterMs: 2000 });
    const engine = await driver.launch(bench.plan(file));
    const grandchild = () => Number(readText(`${binary}.grandchild`));
    await eventually('it has forked', () => grandchild() > 0);
    expect(isAlive(grandchild())).toBe(true);
    await engine.stop();
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
    expect(isAlive(grandchild())).toBe(false);
  });

  it('is no fault of the model when its program is gone, or cannot be executed', async () => {
    const { file } = await bench.model('chat-a');
    const binary = program(path('llama-server'), serverScript(PRESENT_HELP));
    const driver = driverFor(binary);
    await driver.probe();
    chmodSync(binary, 0o600);
    await expect(driver.launch(bench.plan(file))).rejects.toMatchObject({
      failureClass: 'incompatible-engine',
      message: expect.stringContaining(binary) as string,
    });
    rmSync(binary);
    await expect(driver.launch(bench.plan(file))).rejects.toMatchObject({
      failureClass: 'incompatible-engine',
    });
  });
});

const readText = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');

const real = findServers({
  home: bench.home,
  path: process.env['PATH'],
  opt: '/opt',
  ...(process.env['LLAMA_SERVER_BIN'] === undefined ? {} : { named: process.env['LLAMA_SERVER_BIN'] }),
})[0];
if (real === undefined) {
  process.stderr.write(
    'No llama-server found: its test is skipped. Name one in LLAMA_SERVER_BIN to run it.\n',
  );
}

describe('a real llama-server', () => {
  it.skipIf(real === undefined)('is launched, measured, projected, adopted and stopped', async () => {
    const { file } = await bench.model('chat-a');
    const driver = driverFor(real);
    expect(await driver.probe()).toBeDefined();
    const plan = bench.plan(file, { slots: 2 });
    const engine = await driver.launch(plan);
    try {
      await engine.ready(() => undefined);
      const [measured] = (await engine.measure()).byDevice;
      const [projected] = (await driver.project(plan))?.byDevice ?? [];
      if (projected) {
        // The oracle prints whole MiB.
        expect(Math.abs((measured?.kvBytes ?? 0) - projected.kvBytes)).toBeLessThanOrEqual(1024 * 1024);
      }
      expect(await engine.requestsInFlight()).toBe(0);
      const reply = await fetch(`http://127.0.0.1:${engine.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bench.key(plan.residentId)}` },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello?' }], max_tokens: 4 }),
      });
      expect(reply.status).toBe(200);
    } finally {
      await engine.stop();
    }
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });
});
