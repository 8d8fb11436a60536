import type { FactValue } from './file-facts.js';

/** Reads the keys of one architecture (`llama.block_count`), with what llama.cpp takes when one is missing. */
export class HeaderKeys {
  readonly architecture: string;
  constructor(private readonly values: Readonly<Record<string, FactValue>>) {
    const named = values['general.architecture'];
    this.architecture = typeof named === 'string' ? named : '';
  }
  /** A whole number of the architecture's, or undefined. */
  number(key: string): number | undefined {
    const value = this.values[`${this.architecture}.${key}`];
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  }
  /** A value given once for all blocks, or for each. */
  perBlock(key: string, block: number): number | undefined {
    const value = this.values[`${this.architecture}.${key}`];
    if (typeof value === 'number') return value;
    if (!Array.isArray(value)) return undefined;
    const item: unknown = (value as readonly unknown[])[block];
    return typeof item === 'number' ? item : typeof item === 'boolean' ? Number(item) : undefined;
  }
  has(key: string): boolean {
    return this.values[`${this.architecture}.${key}`] !== undefined;
  }
  /** A key as it stands, without the architecture. */
  raw(key: string): FactValue | undefined {
    return this.values[key];
  }
}

/** Architectures that read a text at once and write none: no cache, no chat. */
const ENCODERS = new Set([
  'bert',
  'nomic-bert',
  'nomic-bert-moe',
  'jina-bert-v2',
  'jina-bert-v3',
  'modern-bert',
  'neo-bert',
  'eurobert',
  'gemma-embedding',
  't5encoder',
]);
export const isEncoder = (architecture: string): boolean => ENCODERS.has(architecture);
