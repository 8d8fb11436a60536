import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RAM } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import type { ModelKind } from '#domain/placement-terms.js';
import { isAlive } from '#runtime/process-info.js';
import { decoder } from '../make-model/decoder.js';
import type { DecoderShape } from '../make-model/decoder-shape.js';
import { writeGguf } from '../make-model/gguf-writer.js';
import { damage, DAMAGES } from '../make-model/index.js';
import {
  type EngineStateFile,
  LoadFailure,
  type LoadProgress,
  PortTaken,
  type RunningEngine,
} from '../ports.js';
import { markedProcesses } from './engine-family.js';
import { DEFAULT_TIMING } from './readiness.js';
import { findProgram } from './spawn.js';
import { EngineBench, eventually } from './test-bench.js';

const FOUR_BIT: DecoderShape = {
  architecture: 'llama',
  width: 256,
  blocks: 4,
  heads: 4,
  kvHeads: 2,
  headSize: 64,
  feedForward: 2048,
  contextTokens: 8192,
  type: 'Q4_0',
};

const bench = new EngineBench();
const driver = bench.driver();
/** Lives through everything that befalls the others. */
let neighbour: RunningEngine;
beforeAll(async () => {
  neighbour = await bench.start('chat-b', {}, driver);
});
afterAll(() => bench.close());

const stateOf = (id: string): EngineStateFile =>
  JSON.parse(readFileSync(join(bench.home, 'engines', `${id}.json`), 'utf8')) as EngineStateFile;

const failureOf = (loading: Promise<unknown>): Promise<LoadFailure> =>
  loading.then(
    () => {
      throw new Error('the load did not fail');
    },
    (error: unknown) => {
      if (error instanceof LoadFailure) return error;
      throw error;
    },
  );

describe('the built-in engine driver', () => {
  it('says what is installed', async () => {
    expect(await driver.probe()).toMatchObject({ kind: 'built-in', version: '3.21.1' });
  });

  it('starts an engine, tells its progress, and serves', async () => {
    const { file } = await bench.model('chat-a');
    const told: LoadProgress[] = [];
    const engine = await bench.launch(driver, bench.plan(file));
    const facts = await engine.ready((progress) => told.push(progress));
    expect(Date.parse(facts.stagedAt)).toBeLessThanOrEqual(Date.parse(facts.loadedAt));
    expect(told[0]).toEqual({ phase: 'starting', fraction: 0 });
    expect(told.at(-1)).toEqual({ phase: 'warming', fraction: 1 });
    expect(await engine.requestsInFlight()).toBe(0);
    expect(await engine.logTail()).toMatch(/load_tensors:\s+CPU_Mapped model buffer size/);
  });

  it('keeps its files to the owner and its key out of sight', async () => {
    const engine = await bench.start('chat-a', {}, driver);
    for (const suffix of ['json', 'log', 'plan']) {
      const file = join(bench.home, 'engines', `${engine.residentId}.${suffix}`);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readFileSync(file, 'utf8')).not.toContain(bench.key(engine.residentId));
    }
    expect(readFileSync(`/proc/${engine.pid}/cmdline`, 'utf8')).not.toContain(bench.key(engine.residentId));
    // What it says goes to its own file: no pipe of ours fills up, or breaks when we go.
    for (const fd of [1, 2]) {
      expect(readlinkSync(`/proc/${engine.pid}/fd/${fd}`)).toBe(
        join(bench.home, 'engines', `${engine.residentId}.log`),
      );
    }
    const unnamed = await fetch(`http://127.0.0.1:${engine.port}/props`);
    expect(unnamed.status).toBe(401);
  });

  it('cuts its log, and finds its folder again that somebody removed: what runs is kept, and more is launched', async () => {
    const own = new EngineBench();
    try {
      const impatient = own.driver({ timing: { ...DEFAULT_TIMING, keepFilesEveryMs: 50 } });
      const runs = await own.start('chat-a', {}, impatient);
      // Not written, only that long: it serves, and a log is long because it served.
      const log = join(own.home, 'engines', `${runs.residentId}.log`);
      const { ino } = statSync(log);
      truncateSync(log, 64 * MIB + 1);
      await eventually('its log is cut in place', () => statSync(log).size < MIB);
      expect(statSync(log).ino).toBe(ino);
      rmSync(join(own.home, 'engines'), { recursive: true });
      const file = join(own.home, 'engines', `${runs.residentId}.json`);
      await eventually('its state file is there again', () => existsSync(file));
      expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: runs.pid });
      rmSync(join(own.home, 'engines'), { recursive: true });
      expect((await own.start('chat-a', {}, impatient)).pid).toBeGreaterThan(0);
    } finally {
      await own.close();
    }
  });

  const sizes: [string, ModelKind, Parameters<EngineBench['plan']>[1]][] = [
    ['chat-a', 'chat', {}],
    ['chat-a', 'chat', { contextTokens: 1000, slots: 3, microBatch: 64, flashAttention: false }],
    ['chat-a', 'chat', { kvType: 'q8_0' }],
    ['moe', 'chat', { contextTokens: 2048 }],
    ['embed', 'embedding', { contextTokens: 512, microBatch: 512 }],
    ['rerank', 'rerank', { contextTokens: 256, microBatch: 256 }],
  ];
  it.each(sizes)('projects for %s (%s, %o) what the engine then takes', async (preset, kind, contract) => {
    const { file } = await bench.model(preset as 'chat-a');
    const plan = bench.plan(file, { kind, ...contract });
    const projected = (await driver.project(plan))?.byDevice[0];
    const engine = await bench.launch(driver, plan);
    await engine.ready(() => undefined);
    const measured = await engine.measure();
    await engine.stop();
    const [ram] = measured.byDevice;
    expect(ram).toMatchObject({
      deviceId: RAM,
      weightsBytes: projected?.weightsBytes,
      kvBytes: projected?.kvBytes,
      computeBytes: projected?.computeBytes,
    });
    expect(ram?.weightsBytes).toBeGreaterThan(0);
    expect(ram?.kvBytes).toBeGreaterThanOrEqual(kind === 'chat' ? 1 : 0);
    expect(measured.hostResidentBytes).toBeGreaterThanOrEqual(measured.hostAnonymousBytes);
  });

  it('counts weights once that it copied for the processor, as the header does, and not as its process', async () => {
    const file = join(bench.home, 'models', 'four-bit.gguf');
    const { header, tensors } = decoder(FOUR_BIT, { answer: 'As it was laid out anew.' }, 1);
    await writeGguf(file, header, tensors);
    const plan = bench.plan(file);
    const engine = await bench.launch(driver, plan);
    await engine.ready(() => undefined);
    const { byDevice, hostAnonymousBytes } = await engine.measure();
    const tail = await engine.logTail();
    await engine.stop();
    const [ram] = byDevice;
    expect(ram?.weightsBytes).toBe((await driver.project(plan))?.byDevice[0]?.weightsBytes);
    // Which types are laid out anew is the processor's matter; what the engine says of it is not in its process.
    const copied = /CPU_REPACK model buffer size =\s+([\d.]+) MiB/.exec(tail)?.[1] ?? '0';
    expect(ram).toMatchObject({
      processBytes:
        hostAnonymousBytes -
        Math.round(Number(copied) * MIB) -
        (ram?.kvBytes ?? 0) -
        (ram?.computeBytes ?? 0),
    });
  });

  it.each(DAMAGES)(
    'calls a file with the damage "%s" a bad artifact, and nothing else dies of it',
    async (kind) => {
      const file = join(bench.home, 'models', `damaged-${kind}.gguf`);
      copyFileSync((await bench.model('chat-a')).file, file);
      await damage(file, kind);
      const engine = await bench.launch(driver, bench.plan(file));
      const [failure, projected] = await Promise.all([
        failureOf(engine.ready(() => undefined)),
        driver.project(bench.plan(file)),
      ]);
      expect(failure, failure.message + failure.logTail).toMatchObject({ failureClass: 'bad-artifact' });
      expect(projected).toBeUndefined();
      expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
      expect(isAlive(neighbour.pid, neighbour.pidStartTicks)).toBe(true);
      expect(await neighbour.requestsInFlight()).toBe(0);
    },
  );

  it('counts mapped weights of a large model once, and what its process takes beside them', async () => {
    const engine = await bench.start('big', { contextTokens: 2048, microBatch: 512 }, driver);
    const { byDevice, hostAnonymousBytes, hostResidentBytes } = await engine.measure();
    const { bytes } = await bench.model('big');
    await engine.stop();
    const [ram] = byDevice;
    expect(ram?.weightsBytes).toBeGreaterThan(bytes * 0.9);
    expect(ram?.weightsBytes).toBeLessThanOrEqual(bytes);
    // 16 blocks, 4 heads of 64 values, keys and values of two bytes.
    expect(ram?.kvBytes).toBe(2048 * 16 * 4 * 64 * 2 * 2);
    expect(hostResidentBytes).toBeGreaterThan(bytes * 0.9);
    expect(hostAnonymousBytes).toBeLessThan(bytes);
    expect(ram?.processBytes).toBe(
      Math.max(0, hostAnonymousBytes - (ram?.kvBytes ?? 0) - (ram?.computeBytes ?? 0)),
    );
  });

  const limited = findProgram('prlimit', process.env['PATH']);
  it.skipIf(limited === undefined)(
    'calls a context that the system does not give out of memory',
    async () => {
      const { file } = await bench.model('chat-a');
      // 2 GiB of cache, under a limit of 1 GiB for the data of the process.
      const plan = bench.plan(file, { contextTokens: 2 ** 20, slots: 8 });
      const engine = await bench.launch(driver, plan);
      execFileSync(limited ?? '', [`--pid=${engine.pid}`, `--data=${2 ** 30}`]);
      const failure = await failureOf(engine.ready(() => undefined));
      expect(failure, failure.message).toMatchObject({ failureClass: 'out-of-memory' });
      expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
    },
  );

  it('settles `exited` when the engine is killed, and leaves no state file', async () => {
    const engine = await bench.start('chat-a', {}, driver);
    process.kill(engine.pid, 'SIGKILL');
    expect(await engine.exited).toEqual({ signal: 'SIGKILL' });
    expect(existsSync(join(bench.home, 'engines', `${engine.residentId}.json`))).toBe(false);
  });

  it('stops in order and leaves no process', async () => {
    const engine = await bench.start('chat-a', {}, driver);
    await engine.stop();
    expect(await engine.exited).toEqual({ code: 0 });
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });

  it('is found again by the next agent, who measures and stops it', async () => {
    const engine = await bench.start('chat-a', {}, driver);
    const next = bench.driver();
    const adopted = await next.adopt(stateOf(engine.residentId));
    expect(adopted).toMatchObject({ residentId: engine.residentId, pid: engine.pid, port: engine.port });
    await adopted?.ready(() => undefined);
    expect(await adopted?.measure()).toMatchObject({ slots: 1, contextTokens: 512 });
    await adopted?.stop();
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
    expect(await engine.exited).toEqual({ code: 0 });
  });

  it('adopts nothing whose pid, command or model is another, and stops none of it', async () => {
    const engine = await bench.start('chat-a', {}, driver);
    const state = stateOf(engine.residentId);
    const { pidStartTicks = 0 } = state;
    expect(await driver.adopt({ ...state, files: ['/another.gguf'] })).toBeUndefined();
    expect(await driver.adopt({ ...state, arguments: [...state.arguments, '--another'] })).toBeUndefined();
    expect(await driver.adopt({ ...state, pidStartTicks: pidStartTicks + 1 })).toBeUndefined();
    expect(await driver.adopt({ ...state, bootId: 'another' })).toBeUndefined();
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(true);
    await engine.stop();
    expect(await driver.adopt(state)).toBeUndefined();
  });

  it('ends the process when the load is cancelled', async () => {
    const { file } = await bench.model('chat-a');
    const engine = await bench.launch(driver, bench.plan(file));
    const cancel = new AbortController();
    const failing = failureOf(engine.ready(() => undefined, cancel.signal));
    cancel.abort();
    expect((await failing).failureClass).toBe('cancelled');
    expect(isAlive(engine.pid, engine.pidStartTicks)).toBe(false);
  });

  it('calls a load that stands still stalled, and kills what ignores SIGTERM', async () => {
    const { file } = await bench.model('chat-a');
    const impatient = bench.driver({ timing: { stallMs: 300, killAfterMs: 300 } });
    const engine = await bench.launch(impatient, bench.plan(file));
    process.kill(engine.pid, 'SIGSTOP');
    const failure = await failureOf(engine.ready(() => undefined));
    expect(failure.failureClass).toBe('stalled');
    expect(await engine.exited).toEqual({ signal: 'SIGKILL' });
  });

  it('ends a load that moves but takes longer than its bytes may', async () => {
    const { file } = await bench.model('chat-a');
    const timing = { stallMs: 60_000, killAfterMs: 300, longestLoadMs: () => 300 };
    const engine = await bench.launch(bench.driver({ timing }), bench.plan(file));
    process.kill(engine.pid, 'SIGSTOP');
    const failure = await failureOf(engine.ready(() => undefined));
    expect(failure).toMatchObject({
      failureClass: 'stalled',
      message: expect.stringContaining('may take to load') as string,
    });
    expect(await engine.exited).toEqual({ signal: 'SIGKILL' });
  });

  it('says that its port was taken, and never asks the program that has it', async () => {
    const { file } = await bench.model('chat-a');
    const heard: (string | undefined)[] = [];
    const stranger = createServer((req, res) => {
      heard.push(req.url);
      res.writeHead(200).end('{}');
    });
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    try {
      const running = markedProcesses(join(bench.home, 'engines')).length;
      const { port } = stranger.address() as AddressInfo;
      const unlucky = bench.driver({ freePort: () => Promise.resolve(port) });
      const engine = await bench.launch(unlucky, bench.plan(file));
      const failure = await failureOf(engine.ready(() => undefined));
      expect(failure).toBeInstanceOf(PortTaken);
      expect(failure).toMatchObject({ port, failureClass: 'exited' });
      expect(heard).toEqual([]);
      expect(stranger.listening).toBe(true);
      expect(markedProcesses(join(bench.home, 'engines'))).toHaveLength(running);
    } finally {
      stranger.close();
    }
  });

  it('calls a file that is gone a bad artifact', async () => {
    const engine = await bench.launch(driver, bench.plan(join(bench.home, 'models', 'gone.gguf')));
    expect((await failureOf(engine.ready(() => undefined))).failureClass).toBe('bad-artifact');
  });

  it('lets an idle projector go, and starts another when asked again', async () => {
    const short = bench.driver({ projectorIdleMs: 1 });
    const { file } = await bench.model('chat-a');
    const first = await short.project(bench.plan(file));
    expect(first).toBeDefined();
    await eventually('no projector runs', () => short.projectorPid === undefined);
    expect(await short.project(bench.plan(file))).toMatchObject({
      byDevice: [{ weightsBytes: first?.byDevice[0]?.weightsBytes }],
    });
  });

  it('binds an engine to the cores of its contract', async () => {
    const engine = await bench.start('chat-a', { cores: [0] }, driver);
    expect(readFileSync(`/proc/${engine.pid}/status`, 'utf8')).toMatch(/^Cpus_allowed_list:\t0$/m);
    await engine.stop();
  });
});
