import type { Contract } from '#domain/placement-terms.js';
import { LoadFailure } from '../../ports.js';
import type { KnownFlags } from './help.js';

/** A binary that does not list one of these cannot be told what a plan says. */
export const NEEDED_FLAGS: readonly (readonly string[])[] = [
  ['-m', '--model'],
  ['--host'],
  ['--port'],
  ['-a', '--alias'],
  ['-c', '--ctx-size'],
  ['-np', '--parallel'],
  ['-ngl', '--gpu-layers', '--n-gpu-layers'],
  ['-t', '--threads'],
  ['-ub', '--ubatch-size'],
  ['-ctk', '--cache-type-k'],
  ['-ctv', '--cache-type-v'],
];

export interface ServerPlace {
  readonly modelPath: string;
  readonly alias: string;
  readonly port: number;
  /** Where the key is read from, for binaries that take none from the environment. */
  readonly keyFile?: string;
}

class Arguments {
  readonly list: string[] = [];

  constructor(private readonly flags: KnownFlags) {}

  /** Adds the flag under a name that the binary knows, or leaves it out. @returns whether it was added. */
  add(names: readonly string[], ...values: readonly (string | number)[]): boolean {
    const name = this.flags.first(...names);
    if (name === undefined) return false;
    this.list.push(name, ...values.map(String));
    return true;
  }
}

/** The server divides layers in proportion, the output counting as one more on the last device. */
function tensorSplit(blocksByDevice: readonly number[], gpuLayers: number): readonly number[] {
  const output = gpuLayers - blocksByDevice.reduce((sum, blocks) => sum + blocks, 0);
  return blocksByDevice.map((blocks, i) => (i === blocksByDevice.length - 1 ? blocks + output : blocks));
}

/** What decides the memory: the same for the server and for its oracle. */
function sizingArguments(args: Arguments, flags: KnownFlags, modelPath: string, contract: Contract): void {
  const { contextTokens, slots, gpuLayers, cpuMoeLayers, kvType, microBatch, threads } = contract;
  args.add(['-m', '--model'], modelPath);
  // The server divides its context among the slots.
  args.add(['-c', '--ctx-size'], contextTokens * slots);
  args.add(['-np', '--parallel'], slots);
  args.add(['-no-kvu', '--no-kv-unified']);
  args.add(['-ngl', '--gpu-layers', '--n-gpu-layers'], gpuLayers);
  if (contract.devices.length === 0) args.add(['-dev', '--device'], 'none');
  if (contract.blocksByDevice) {
    args.add(['-sm', '--split-mode'], 'layer');
    args.add(['-ts', '--tensor-split'], tensorSplit(contract.blocksByDevice, gpuLayers).join(','));
  }
  if (cpuMoeLayers > 0) args.add(['-ncmoe', '--n-cpu-moe'], cpuMoeLayers);
  args.add(['-t', '--threads'], threads);
  args.add(['-tb', '--threads-batch'], threads);
  args.add(['-ctk', '--cache-type-k'], kvType);
  args.add(['-ctv', '--cache-type-v'], kvType);
  const flash = flags.first('-fa', '--flash-attn');
  if (flash !== undefined && flags.takesOnOff(flash)) {
    args.add([flash], contract.flashAttention ? 'on' : 'off');
  } else if (flash !== undefined && contract.flashAttention) {
    // Older releases have a switch, off unless it is given.
    args.add([flash]);
  }
  args.add(['-b', '--batch-size'], microBatch);
  args.add(['-ub', '--ubatch-size'], microBatch);
}

/** Everything explicit: nothing is left for the server to choose, and no flag that it does not list. */
export function serverArguments(
  flags: KnownFlags,
  contract: Contract,
  place: ServerPlace,
): readonly string[] {
  const args = new Arguments(flags);
  sizingArguments(args, flags, place.modelPath, contract);
  args.add(['--host'], '127.0.0.1');
  args.add(['--port'], place.port);
  args.add(['-a', '--alias'], place.alias);
  // The prompt cache takes up to 8 GiB of host memory that no plan has reserved.
  args.add(['-cram', '--cache-ram'], 0);
  args.add(['-fit', '--fit'], 'off');
  args.add(['--metrics']);
  args.add(['--jinja']);
  args.add(['--no-ui', '--no-webui']);
  args.add(['--offline']);
  // At 3 no buffer size is told; at 5 those of dry runs are told as well.
  args.add(['-lv', '--verbosity', '--log-verbosity'], 4);
  if (contract.kind === 'embedding') args.add(['--embeddings', '--embedding']);
  if (contract.kind === 'rerank') args.add(['--reranking', '--rerank']);
  if (place.keyFile !== undefined) args.add(['--api-key-file'], place.keyFile);
  const extra = contract.engineArgs ?? [];
  const unknown = extra.find((word) => word.startsWith('--') && !flags.has(word));
  if (unknown !== undefined)
    throw new LoadFailure(
      'incompatible-engine',
      `This llama-server has no argument ${unknown}, which engineArgs sets.`,
      '',
    );
  args.list.push(...extra);
  return args.list;
}

/** For `llama-fit-params`, which builds the model and the context without allocating. */
export function oracleArguments(
  flags: KnownFlags,
  contract: Contract,
  modelPath: string,
): readonly string[] | undefined {
  const args = new Arguments(flags);
  sizingArguments(args, flags, modelPath, contract);
  return args.add(['-fitp', '--fit-print'], 'on') ? args.list : undefined;
}
