import type { ModelKind } from './placement-terms.js';

/** How one block keeps what it has read; it decides what a token costs in cache. */
export type BlockKind =
  | {
      readonly kind: 'attention';
      readonly kvHeads: number;
      readonly keyLength: number;
      readonly valueLength: number;
    }
  | {
      readonly kind: 'window';
      readonly kvHeads: number;
      readonly keyLength: number;
      readonly valueLength: number;
      readonly windowTokens: number;
    }
  | { readonly kind: 'mla'; readonly kvLoraRank: number; readonly ropeDims: number }
  | {
      readonly kind: 'recurrent';
      readonly convKernel: number;
      readonly innerSize: number;
      readonly groups: number;
      readonly stateSize: number;
    };

export const TEMPLATE_ABILITIES = ['tools', 'thinking'] as const;
export type TemplateAbility = (typeof TEMPLATE_ABILITIES)[number];

export interface BlockGeometry {
  /** Bytes that every token needs. */
  readonly alwaysBytes: number;
  /** Bytes of routed experts; 0 in a dense block. */
  readonly expertBytes: number;
  readonly cache: BlockKind;
}

/**
 * What the file's header says of one artifact, enough to price a plan without loading it.
 * Bytes are those of the tensors as stored.
 */
export interface Geometry {
  readonly architecture: string;
  readonly kind: ModelKind;
  readonly trainedContextTokens: number;
  readonly embeddingLength: number;
  readonly vocabularyTokens: number;
  readonly parameters: number;
  readonly blocks: readonly BlockGeometry[];
  readonly tokenEmbeddingBytes: number;
  /** 0 when the output is tied to the token embedding. */
  readonly outputBytes: number;
  readonly tiedOutput: boolean;
  /** Tensors outside blocks that are neither embedding nor output (norms, rope factors, classifiers). */
  readonly otherBytes: number;
  readonly expertCount: number;
  readonly expertUsedCount: number;
  readonly hasChatTemplate: boolean;
  /** What the chat template can say beside plain turns; absent: not looked for. */
  readonly abilities?: readonly TemplateAbility[];
}
