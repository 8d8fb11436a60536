import type { Geometry } from '../geometry.js';
import type { ModelKey } from '../ids.js';
import type { ModelKind } from '../placement-terms.js';
import type { EventOf } from './envelope.js';

/** Stream `catalog-<workerId>`: what lies on the machine's disks. */

export interface ModelFile {
  /** Relative to the model's path. */
  readonly name: string;
  readonly bytes: number;
}

/** One loadable form of a model: a GGUF quant with all its shards. */
export interface Artifact {
  /** `Q4_K_M`, `F16`; unique within the model. */
  readonly label: string;
  readonly files: readonly ModelFile[];
  readonly complete: boolean;
  /** Why it can never be loaded, in words: a truncated file, an unknown format. Absent: sound as far as is known. */
  readonly broken?: string;
  /** Absent when the header could not be read. */
  readonly geometry?: Geometry;
}

export interface FoundModel {
  readonly modelKey: ModelKey;
  /** Other names that resolve to it (`llama3:8b` of Ollama's store, a short name). */
  readonly aliases: readonly string[];
  /** `models`, `huggingface`, `ollama`, `lm-studio`: which root it was found under. */
  readonly root: string;
  /** Relative to that root. */
  readonly path: string;
  readonly kind: ModelKind;
  readonly framework: 'gguf';
  /** Best first. */
  readonly artifacts: readonly Artifact[];
  /** True when Berth wrote it so that there is something to call. */
  readonly smoke?: boolean;
  readonly marker?: {
    readonly source: 'beside' | 'sidecar' | 'derived';
    readonly reasons: readonly string[];
  };
}

export type CatalogEvent =
  | EventOf<'ModelFound', FoundModel>
  | EventOf<'ModelChanged', FoundModel>
  | EventOf<'ModelGone', { readonly modelKey: ModelKey; readonly path: string }>
  | EventOf<
      'WeightsHashed',
      {
        readonly modelKey: ModelKey;
        readonly file: string;
        readonly bytes: number;
        readonly sha256: string;
        readonly seconds: number;
      }
    >;

export type CatalogEventType = CatalogEvent['type'];
