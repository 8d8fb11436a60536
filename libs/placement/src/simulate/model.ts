import type { DeviceId, ModelKey } from '#domain/ids.js';
import type { BytesByDevice } from '../charges.js';

/** The modelled fleet: what the policies decide about. Times are milliseconds since 1970, whole. */

export interface SimModel {
  readonly modelKey: ModelKey;
  /** What a load of it reads. */
  readonly fileBytes: number;
  /** What it really takes on a card. */
  readonly cardBytes: number;
  readonly slots: number;
  readonly promptMsPerToken: number;
  readonly decodeMsPerToken: number;
}

export interface SimBox {
  readonly name: string;
  readonly devices: readonly { readonly deviceId: DeviceId; readonly totalBytes: number }[];
  /** Host RAM that keeps the files last loaded; 0: every load reads the disk. */
  readonly fileCacheBytes: number;
}

export interface SimCall {
  /** Place in the list of calls. */
  readonly index: number;
  /** Place in the list of models. */
  readonly model: number;
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly group?: string;
  /** Of the prompt, before it was counted; absent: it is known exactly. */
  readonly estimatedTokens?: number;
  readonly maxTokens?: number;
  readonly background?: boolean;
  /** What it really took, where that is known; else the rates of its model hold. */
  readonly took?: CallTook;
}

/** Milliseconds from the beginning of the prompt, as measured on a real engine. */
export interface CallTook {
  readonly firstByteMs: number;
  readonly totalMs: number;
  /** Of the placement that it was measured on; another one is slower or faster by the ratio of the two. */
  readonly tokenSeconds?: number;
}

/** Seconds of a load = start + bytes ÷ rate, by where the file is read from. */
export interface LoadModel {
  readonly disk: { readonly startSeconds: number; readonly bytesPerSecond: number };
  readonly ram: { readonly startSeconds: number; readonly bytesPerSecond: number };
  /** What the nth load of a model takes, relative to the above: so that every policy meets the same luck. */
  readonly noise: (model: number, nth: number) => number;
}

export const loadSecondsFrom = (load: LoadModel, from: 'disk' | 'ram', fileBytes: number): number =>
  load[from].startSeconds + fileBytes / load[from].bytesPerSecond;

export interface Scenario {
  readonly models: readonly SimModel[];
  readonly boxes: readonly SimBox[];
  /** In order of arrival. */
  readonly calls: readonly SimCall[];
  readonly load: LoadModel;
}

/** What became of a call. */
export interface CallOutcome {
  readonly call: SimCall;
  readonly startMs?: number;
  readonly firstByteMs?: number;
  readonly endMs?: number;
  readonly refused?: { readonly code: string; readonly atMs: number };
}

export interface LoadOutcome {
  readonly model: number;
  readonly box: number;
  readonly from: 'disk' | 'ram';
  /** When a policy decided on it. */
  readonly orderedMs: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly fileBytes: number;
  readonly failed: boolean;
}

/** A load that a policy asks for: it begins when its victims are gone and the box's loader is free. */
export interface LoadOrder {
  readonly box: number;
  readonly model: number;
  /** What it really takes. */
  readonly bytes: BytesByDevice;
  readonly slots: number;
  /** Ids of residents that must be gone first. */
  readonly victims: readonly number[];
  /** How long it takes, where loads of it were measured; else the load model of the scenario holds. */
  readonly seconds?: number;
  /** Seconds per output token of this placement, where they can be told. */
  readonly tokenSeconds?: number;
}
