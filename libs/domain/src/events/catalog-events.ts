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

export const WEIGHT_FORMATS = ['gguf', 'safetensors', 'pickle'] as const;
/** How weights lie on disk. Pickled ones are listed, with the reason why they are never loaded. */
export type WeightFormat = (typeof WEIGHT_FORMATS)[number];

export const ABILITIES = ['vision', 'audio', 'tools', 'reasoning', 'transcribe', 'speak', 'moe'] as const;
/** What a model can do beyond its kind, as its files show. */
export type Ability = (typeof ABILITIES)[number];

/** One loadable form of a model: a GGUF quant with all its shards, a safetensors folder. */
export interface Artifact {
  /** `Q4_K_M`, `F16`; unique within the model. */
  readonly label: string;
  readonly files: readonly ModelFile[];
  readonly complete: boolean;
  /** Names of files that it is known to lack. */
  readonly missing?: readonly string[];
  /** Absent: GGUF. An engine must say that it opens any other. */
  readonly format?: WeightFormat;
  /** Why it can never be loaded, in words: a truncated file, an unknown format. Absent: sound as far as is known. */
  readonly broken?: string;
  /** Absent when the header could not be read. */
  readonly geometry?: Geometry;
}

/** A file that goes with a base model and is none itself. */
export interface Attachment {
  /** What reads pictures or sound for the base (mmproj), or changes its weights (LoRA). */
  readonly role: 'projector' | 'adapter';
  /** Unique within the model. */
  readonly label: string;
  readonly files: readonly ModelFile[];
  /** Where it lies, when that is not the model's own folder. */
  readonly at?: { readonly root: string; readonly path: string };
  /** The adapter's own; each costs four bytes. */
  readonly parameters?: number;
  readonly broken?: string;
}

/** One fact that a marker said and the files deny: what was said, what holds, and why. */
export interface MarkerCorrection {
  readonly fact: string;
  readonly said: string;
  readonly found: string;
  readonly reason: string;
}

export interface FoundModel {
  readonly modelKey: ModelKey;
  /** Other names that resolve to it (`llama3:8b` of Ollama's store, a short name). */
  readonly aliases: readonly string[];
  /** `models`, `huggingface`, `ollama`, `lm-studio`, `process`: which root it was found under. */
  readonly root: string;
  /** Relative to that root. */
  readonly path: string;
  readonly kind: ModelKind;
  /** Of its best artifact. */
  readonly framework: WeightFormat;
  /** Best first. */
  readonly artifacts: readonly Artifact[];
  /** In the order of `ABILITIES`. */
  readonly abilities?: readonly Ability[];
  readonly trainedContextTokens?: number;
  readonly attachments?: readonly Attachment[];
  /** True when Berth wrote it so that there is something to call. */
  readonly smoke?: boolean;
  readonly marker?: {
    /** `beside` the model, in Berth's own folder (`sidecar`), or none: everything is `derived` from the files. */
    readonly source: 'beside' | 'sidecar' | 'derived';
    /** What each fact was taken from, in words; what the marker said wrongly, among it. */
    readonly reasons: readonly string[];
    readonly corrections?: readonly MarkerCorrection[];
    readonly description?: string;
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
