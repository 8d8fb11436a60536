import type {
  CallItem,
  DecisionItem,
  DeviceItem,
  EvictionItem,
  PullItem,
  QueueItem,
  ResidentItem,
} from './rows.js';
import type { OperatorItem } from './operator.js';

/** What `/live` tells of, by topic, and the key that tells one item of it from another. */
export interface LiveItems {
  /** By `residentId`. A phase of `ended` is the last that is heard of one. */
  readonly residents: ResidentItem;
  /** By `workerId` and `deviceId`. */
  readonly devices: DeviceItem;
  /** By `callId`. The snapshot has the newest 200, and all that run. */
  readonly calls: CallItem;
  /** By `decisionId`. The snapshot has the newest 200, and all that are open. */
  readonly decisions: DecisionItem;
  /** By `evictionId`. The snapshot has the newest 200. */
  readonly evictions: EvictionItem;
  /** By `pullId`. */
  readonly pulls: PullItem;
  /** By `actionId`. */
  readonly operator: OperatorItem;
  /** By `workerId` and `modelKey`: what lies on disks. */
  readonly models: LiveModel;
}
export type LiveTopic = keyof LiveItems;

/** What is of the moment and stands in no log: each frame has the whole of it. */
export interface MomentItems {
  /** In the order of the queue of the api that is asked. */
  readonly queue: QueueItem;
  /** What residents do, and how far loads are. */
  readonly activity: ActivityItem;
  /** What devices read, once a second while an agent is connected. */
  readonly readings: ReadingItem;
}
export type MomentTopic = keyof MomentItems;

export interface LiveModel {
  readonly workerId: string;
  readonly modelKey: string;
  readonly kind: string;
  readonly smoke: boolean;
  readonly artifacts: readonly {
    readonly label: string;
    readonly bytes: number;
    readonly complete: boolean;
  }[];
  /** It is no longer on the disk. */
  readonly gone: boolean;
}

export interface ActivityItem {
  readonly residentId: string;
  readonly workerId: string;
  /** Calls under way on it, through the api that is asked. */
  readonly callsInFlight: number;
  readonly lastCallAt?: string;
  readonly loading?: { readonly phase: string; readonly fraction: number; readonly elapsedSeconds: number };
}

export interface ReadingItem {
  readonly workerId: string;
  readonly at: string;
  readonly cpuBusyCores?: number;
  readonly devices: readonly {
    readonly deviceId: string;
    readonly totalBytes?: number;
    readonly usedBytes?: number;
    readonly foreignBytes?: number;
  }[];
}

/** What a client sends: the topics that it wants from now on. Sent again, it replaces the ones before. */
export interface LiveSubscribe {
  readonly subscribe: readonly (LiveTopic | MomentTopic)[];
  /** The last position that it has: what came after it follows, and no snapshot where that is still known. */
  readonly since?: string;
}

/** One item as it is after the event at `position`. */
export type LiveChange = {
  [T in LiveTopic]: { readonly topic: T; readonly position: string; readonly item: LiveItems[T] };
}[LiveTopic];

export type LiveSnapshot = {
  [T in LiveTopic]: {
    readonly type: 'snapshot';
    readonly topic: T;
    /** Changes at and before it are in it. */
    readonly position: string;
    readonly items: readonly LiveItems[T][];
  };
}[LiveTopic];

export type LiveMoment = {
  [T in MomentTopic]: {
    readonly type: 'moment';
    readonly topic: T;
    /** ISO time of the api. */
    readonly at: string;
    readonly items: readonly MomentItems[T][];
  };
}[MomentTopic];

/** What the server sends. */
export type LiveFrame =
  | LiveSnapshot
  /** In the order of the log. `position` is that up to which the client has everything: its next `since`. */
  | { readonly type: 'changes'; readonly position: string; readonly changes: readonly LiveChange[] }
  /** The whole of what is of the moment: it replaces what was told before. */
  | LiveMoment
  /** It read too slowly and missed what came after `position`: subscribe again with that as `since`. */
  | { readonly type: 'lagged'; readonly position: string }
  /** Every 10 s: the line is alive, and everything up to `position` was told. */
  | { readonly type: 'beat'; readonly position: string; readonly at: string }
  | { readonly type: 'error'; readonly code: string; readonly message: string };
