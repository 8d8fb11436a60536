import { describe, expect, it } from 'vitest';
import { deviceId } from '#domain/ids.js';
import type { Contract } from '#domain/placement-terms.js';
import { NEEDED_FLAGS, oracleArguments, serverArguments } from './arguments.js';
import { OLD_HELP, PRESENT_HELP } from './help-samples.js';
import { parseHelp } from './help.js';

const contract: Contract = {
  kind: 'chat',
  engine: { kind: 'llama-server', build: 'x' },
  rung: 'ram-only',
  contextTokens: 4096,
  slots: 2,
  kvType: 'q8_0',
  gpuLayers: 0,
  cpuMoeLayers: 0,
  microBatch: 512,
  flashAttention: true,
  threads: 3,
  devices: [],
};
const place = { modelPath: '/m/x.gguf', alias: 'owner/repo', port: 4711 };
const present = parseHelp(PRESENT_HELP);
const old = parseHelp(OLD_HELP);

/** The value after a flag. */
const after = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1];

describe('the help of a binary', () => {
  it('lists every name of a flag, wrapped lines and single ones included', () => {
    for (const name of ['-ngl', '--n-gpu-layers', '-no-kvu', '--no-ui', '--reranking', '--metrics', '-lv']) {
      expect(present.has(name), name).toBe(true);
    }
    expect(present.has('--cpu-moe')).toBe(false);
    expect(old.has('--cache-ram')).toBe(false);
  });

  it('takes no word of a description for a flag', () => {
    expect(present.has('-1')).toBe(false);
    expect(present.has('--same')).toBe(false);
  });

  it('tells a flag with a value from a switch', () => {
    expect(present.takesOnOff('-fa')).toBe(true);
    expect(old.takesOnOff('-fa')).toBe(false);
  });
});

describe('the arguments of llama-server', () => {
  const args = serverArguments(present, contract, place);

  it('say everything that the server would choose by itself', () => {
    expect(after(args, '-m')).toBe('/m/x.gguf');
    expect(after(args, '-c')).toBe('8192');
    expect(after(args, '-np')).toBe('2');
    expect(after(args, '-ngl')).toBe('0');
    expect(after(args, '-dev')).toBe('none');
    expect(after(args, '-t')).toBe('3');
    expect(after(args, '-tb')).toBe('3');
    expect(after(args, '-ctk')).toBe('q8_0');
    expect(after(args, '-ctv')).toBe('q8_0');
    expect(after(args, '-fa')).toBe('on');
    expect(after(args, '-ub')).toBe('512');
    expect(after(args, '-cram')).toBe('0');
    expect(after(args, '-fit')).toBe('off');
    expect(after(args, '-lv')).toBe('4');
    expect(after(args, '--host')).toBe('127.0.0.1');
    expect(after(args, '--port')).toBe('4711');
    expect(after(args, '-a')).toBe('owner/repo');
    for (const flag of ['-no-kvu', '--metrics', '--no-ui', '--offline']) expect(args).toContain(flag);
  });

  it('never name a flag that the binary does not list', () => {
    for (const [flags, list] of [
      [present, args],
      [old, serverArguments(old, contract, { ...place, keyFile: '/k' })],
    ] as const) {
      for (const arg of list.filter((each) => /^--?[a-z]/.test(each))) expect(flags.has(arg), arg).toBe(true);
    }
  });

  it('use the names of an older release, and its key file', () => {
    const list = serverArguments(old, contract, { ...place, keyFile: '/k' });
    expect(list).toContain('--no-webui');
    expect(after(list, '--api-key-file')).toBe('/k');
    expect(after(list, '-fa')?.startsWith('-')).toBe(true);
    expect(serverArguments(old, { ...contract, flashAttention: false }, place)).not.toContain('-fa');
  });

  it('start a server for the kind of its model', () => {
    expect(serverArguments(present, { ...contract, kind: 'embedding' }, place)).toContain('--embeddings');
    expect(serverArguments(present, { ...contract, kind: 'rerank' }, place)).toContain('--reranking');
    expect(args).not.toContain('--embeddings');
  });

  it('put layers on the accelerators of the contract and experts into RAM', () => {
    const devices = [deviceId('GPU-1')];
    const list = serverArguments(present, { ...contract, devices, gpuLayers: 20, cpuMoeLayers: 8 }, place);
    expect(after(list, '-ngl')).toBe('20');
    expect(after(list, '-ncmoe')).toBe('8');
    expect(list).not.toContain('-dev');
  });

  it('say how many blocks each of several accelerators has, the output with the last', () => {
    const devices = [deviceId('GPU-1'), deviceId('GPU-2')];
    const flags = parseHelp(`${PRESENT_HELP}\n-ts, --tensor-split N0,N1   fraction of the model`);
    const list = serverArguments(
      flags,
      { ...contract, devices, gpuLayers: 21, blocksByDevice: [12, 8] },
      place,
    );
    expect(after(list, '-ts')).toBe('12,9');
  });

  it('end with those that the settings of the pair pass on, when the binary has them', () => {
    const flags = parseHelp(`${PRESENT_HELP}\n--rope-scaling {none,linear,yarn}   RoPE scaling`);
    const extra = { ...contract, engineArgs: ['--rope-scaling', 'yarn'] };
    expect(serverArguments(flags, extra, place).slice(-2)).toEqual(['--rope-scaling', 'yarn']);
    expect(() => serverArguments(old, extra, place)).toThrow('has no argument --rope-scaling');
  });

  it('hold no key', () => {
    expect(args.some((arg) => arg.includes('api-key'))).toBe(false);
  });

  it('of the oracle are those that decide the memory, and only for a binary that prints', () => {
    const oracle = parseHelp(
      `${PRESENT_HELP}\n-fitp, --fit-print [on|off]           print the required memory`,
    );
    const list = oracleArguments(oracle, contract, '/m/x.gguf') ?? [];
    expect(after(list, '-fitp')).toBe('on');
    expect(after(list, '-c')).toBe('8192');
    expect(list).not.toContain('--port');
    expect(oracleArguments(present, contract, '/m/x.gguf')).toBeUndefined();
  });

  it('need flags that both samples have', () => {
    for (const names of NEEDED_FLAGS) {
      expect(present.first(...names), names.join()).toBeDefined();
      expect(old.first(...names), names.join()).toBeDefined();
    }
  });
});
