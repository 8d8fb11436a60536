import type { DeviceId } from './ids.js';

/** The words of placement that events carry and that every process shares. */

export const RUNGS = ['gpu-only', 'moe', '4bit', 'ram-only', 'max-ram', 'max-gpu'] as const;
/** One way to place an artifact. */
export type Rung = (typeof RUNGS)[number];

export const KV_TYPES = ['f16', 'q8_0', 'q4_0'] as const;
export type KvType = (typeof KV_TYPES)[number];

/** What a model can do for a caller; an engine is started for one of these. */
export const MODEL_KINDS = ['chat', 'embedding', 'rerank', 'speech', 'image'] as const;
export type ModelKind = (typeof MODEL_KINDS)[number];

export const ENGINE_KINDS = ['built-in', 'llama-server'] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** A text as it is, or the name of an entry in the file of secrets that lies beside the engines. */
export type EngineEnvValue = string | { readonly secret: string };
export type EngineEnv = Readonly<Record<string, EngineEnvValue>>;

/** What a pair's settings hand to its engine beside the plan. */
export interface EngineExtras {
  readonly engineArgs?: readonly string[];
  readonly engineEnv?: EngineEnv;
}

/** Tokens per slot: what the history suggests, an exact number, or a range. */
export type ContextAsk = 'auto' | number | { readonly min: number; readonly max: number };

/** What the caller and the settings asked. Reuse of a resident looks at this, never at the rung. */
export interface Ask extends EngineExtras {
  readonly context: ContextAsk;
  readonly kvType: KvType;
  /** Serve slots of the engine. */
  readonly slots: number;
  readonly allowedRungs?: readonly Rung[];
  /** The artifact label that must serve (`@quant=Q4_K_M`); absent: any, best first. */
  readonly artifact?: string;
  readonly gpuLayers?: number;
  readonly cpuMoeLayers?: number;
}

/** The ask plus what the chosen rung derived: everything that an engine is started with. Nothing is left to the engine. */
export interface Contract extends EngineExtras {
  readonly kind: ModelKind;
  readonly engine: { readonly kind: EngineKind; readonly build: string };
  readonly rung: Rung;
  /** Tokens per slot. */
  readonly contextTokens: number;
  readonly slots: number;
  readonly kvType: KvType;
  /** Blocks on accelerators; 0 on a machine without one. */
  readonly gpuLayers: number;
  /** Expert layers kept in RAM, from block 0 upward; 0 when none is. */
  readonly cpuMoeLayers: number;
  readonly microBatch: number;
  readonly flashAttention: boolean;
  readonly threads: number;
  /** CPU numbers the engine is bound to; absent: not bound. */
  readonly cores?: readonly number[];
  /** Accelerators used, in order; RAM is not named here. */
  readonly devices: readonly DeviceId[];
  /** Blocks on each of several devices, in their order (llama.cpp's tensor split); absent with one or none. */
  readonly blocksByDevice?: readonly number[];
}

export const NEED_TERMS = [
  'weights',
  'kv',
  'compute',
  'state',
  'adapter',
  'projector',
  'process',
  'promptCache',
] as const;
export type NeedTermName = (typeof NEED_TERMS)[number];

/** How a figure is known, strongest first. */
export const BASES = ['measured', 'measured+header', 'projected', 'header', 'estimated', 'unknown'] as const;
export type Basis = (typeof BASES)[number];

/** One term of what a plan takes on one device. `bytes` is left out when the basis is `unknown`. */
export interface NeedTerm {
  readonly deviceId: DeviceId;
  readonly term: NeedTermName;
  readonly bytes?: number;
  readonly basis: Basis;
  /** Event id of the measurement or projection that the figure came from. */
  readonly fromEvent?: string;
}

/** Bytes on one device, as an engine or the operating system reported them. */
export interface DeviceBytes {
  readonly deviceId: DeviceId;
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly computeBytes: number;
  /** What the process takes on the device beyond the three above. */
  readonly processBytes: number;
}

export const sumOf = (b: DeviceBytes): number => b.weightsBytes + b.kvBytes + b.computeBytes + b.processBytes;

/**
 * The placement class: the key under which measurements are kept. Two loads of one class take the same memory.
 * The engine's build is part of it, since buffers change between releases.
 */
export interface PlacementClass {
  readonly artifact: string;
  readonly devices: readonly DeviceId[];
  readonly gpuLayers: number;
  readonly cpuMoeLayers: number;
  readonly kvType: KvType;
  readonly contextTokens: number;
  readonly slots: number;
  readonly microBatch: number;
  readonly flashAttention: boolean;
  readonly engineBuild: string;
  readonly blocksByDevice?: readonly number[];
}

/** `<kind>@<build>`, as it stands in a placement class. */
export const engineBuildOf = (engine: { kind: EngineKind; build: string }): string =>
  `${engine.kind}@${engine.build}`;

export function placementClassOf(artifact: string, contract: Contract): PlacementClass {
  return {
    artifact,
    devices: contract.devices,
    gpuLayers: contract.gpuLayers,
    cpuMoeLayers: contract.cpuMoeLayers,
    kvType: contract.kvType,
    contextTokens: contract.contextTokens,
    slots: contract.slots,
    microBatch: contract.microBatch,
    flashAttention: contract.flashAttention,
    engineBuild: engineBuildOf(contract.engine),
    ...(contract.blocksByDevice ? { blocksByDevice: contract.blocksByDevice } : {}),
  };
}

/** Whom to evict first. */
export const EVICTION_ORDERS = ['loss', 'lru', 'gdsf', 'classic'] as const;
export type EvictionOrder = (typeof EVICTION_ORDERS)[number];

/** Whether two classes are one: the same as equal keys, without making the keys. */
export function sameClass(a: PlacementClass, b: PlacementClass): boolean {
  return (
    a.contextTokens === b.contextTokens &&
    a.gpuLayers === b.gpuLayers &&
    a.cpuMoeLayers === b.cpuMoeLayers &&
    a.kvType === b.kvType &&
    a.slots === b.slots &&
    a.microBatch === b.microBatch &&
    a.flashAttention === b.flashAttention &&
    a.engineBuild === b.engineBuild &&
    a.artifact === b.artifact &&
    sameList(a.devices, b.devices) &&
    sameList(a.blocksByDevice, b.blocksByDevice)
  );
}

export function sameList<T>(a: readonly T[] | undefined, b: readonly T[] | undefined): boolean {
  if (a === b) return true;
  if (!a || !b || a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** A class as a map key; equal classes give equal text. */
export function classKey(c: PlacementClass): string {
  return [
    c.artifact,
    c.devices.join('+') + (c.blocksByDevice ? `:${c.blocksByDevice.join('+')}` : ''),
    `gl${c.gpuLayers}`,
    `cm${c.cpuMoeLayers}`,
    c.kvType,
    `ctx${c.contextTokens}`,
    `np${c.slots}`,
    `ub${c.microBatch}`,
    c.flashAttention ? 'fa' : 'nofa',
    c.engineBuild,
  ].join('|');
}
