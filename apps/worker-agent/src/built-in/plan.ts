import { readFileSync } from 'node:fs';
import { KV_TYPES, MODEL_KINDS, type KvType, type ModelKind } from '#domain/placement-terms.js';

/** What the driver writes for the child: everything but the key, which comes in the environment. */
export interface ChildPlan {
  readonly residentId: string;
  /** What answers call the model. */
  readonly alias: string;
  readonly modelPath: string;
  readonly port: number;
  readonly kind: ModelKind;
  /** Tokens per slot. */
  readonly contextTokens: number;
  readonly slots: number;
  readonly kvType: KvType;
  readonly microBatch: number;
  readonly flashAttention: boolean;
  readonly threads: number;
}

/** The part of a plan that decides the memory it takes. */
export type SizingPlan = Omit<ChildPlan, 'residentId' | 'alias' | 'port'>;

/** Rows of the KV cache are allocated in steps of this many tokens per slot. */
const CONTEXT_STEP = 256;

/** What the engine allocates per slot; the plan's own number stays the limit that requests meet. */
export const allocatedContextTokens = (contextTokens: number): number =>
  Math.ceil(contextTokens / CONTEXT_STEP) * CONTEXT_STEP;

/** An encoder reads its whole input in one batch, one input at a time: it has one slot whatever the plan says. */
export const slotsOf = (plan: Pick<ChildPlan, 'kind' | 'slots'>): number =>
  plan.kind === 'chat' ? plan.slots : 1;

/** The longest input of one request: an encoder cannot split it over batches. */
export const inputLimitTokens = (plan: Pick<ChildPlan, 'kind' | 'contextTokens' | 'microBatch'>): number =>
  plan.kind === 'chat' ? plan.contextTokens : Math.min(plan.contextTokens, plan.microBatch);

/** @throws Error that names the field, when the file is no plan. */
export function readPlan(file: string): ChildPlan {
  const raw = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const text = (name: keyof ChildPlan): string => {
    const value = raw[name];
    if (typeof value !== 'string' || value === '') throw bad(name, 'must be a text', value);
    return value;
  };
  const whole = (name: keyof ChildPlan, max: number): number => {
    const value = raw[name];
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
      throw bad(name, `must be a whole number from 1 to ${max}`, value);
    }
    return value;
  };
  const oneOf = <T extends string>(name: keyof ChildPlan, values: readonly T[]): T => {
    const value = values.find((v) => v === raw[name]);
    if (value === undefined) throw bad(name, `must be one of ${values.join(', ')}`, raw[name]);
    return value;
  };
  return {
    residentId: text('residentId'),
    alias: text('alias'),
    modelPath: text('modelPath'),
    port: whole('port', 65535),
    kind: oneOf('kind', MODEL_KINDS),
    contextTokens: whole('contextTokens', 2 ** 24),
    slots: whole('slots', 1024),
    kvType: oneOf('kvType', KV_TYPES),
    microBatch: whole('microBatch', 2 ** 20),
    flashAttention: raw['flashAttention'] === true,
    threads: whole('threads', 4096),
  };
}

const bad = (name: string, what: string, value: unknown) =>
  new Error(`The engine plan's ${name} ${what}, not ${JSON.stringify(value)}.`);
