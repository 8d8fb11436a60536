import type {
  CallItem,
  Comparison,
  DecisionItem,
  ResidentItem,
  Situation,
  WirePage,
} from '#domain/wire/index.js';
import type { ModelView as ModelAnswer } from '../../../api/src/admin/models/model.view.js';
import type { PlacementDecidedData, PlacementRefusedData } from '#domain/events/worker-events.js';

/** What the management API answers and `/live` does not tell. */
export type { AccuracyView } from '../../../api/src/admin/accuracy/accuracy.view.js';
export type { LoadView } from '../../../api/src/admin/history/history.view.js';
export type ModelView = Omit<ModelAnswer, 'marker'> & {
  /** How each fact about it is known, in words. */
  readonly marker?: { readonly source: string; readonly reasons: readonly string[] };
};

export type Paged<T> = WirePage<T>;

export interface DecisionDetail extends DecisionItem {
  readonly working: {
    readonly stream: string;
    readonly revision: number;
    readonly event: PlacementDecidedData | PlacementRefusedData;
  };
  readonly text: string;
}

export interface Explained {
  readonly call: CallItem;
  readonly situation: Situation;
  readonly decision?: DecisionDetail;
  readonly resident?: ResidentItem;
  readonly compared: readonly Comparison[];
  readonly text: string;
}

export interface KeyItem {
  readonly keyId: string;
  readonly name: string;
  readonly scope: 'use' | 'admin';
  readonly issuedAt: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly revokedBy?: string;
}

/** The only time that a key is shown. */
export interface CreatedKey {
  readonly keyId: string;
  readonly key: string;
  readonly position?: string;
}

export interface SettingValue {
  readonly value: unknown;
  /** default, fleet, worker, pair */
  readonly from: string;
  readonly scope?: string;
}

export interface ScopeSettings {
  readonly scope: string;
  readonly level: 'fleet' | 'worker' | 'pair';
  readonly revision: number;
  readonly own: Readonly<Record<string, unknown>>;
  readonly inherited: Readonly<Record<string, SettingValue>>;
  readonly effective: Readonly<Record<string, SettingValue>>;
}
