import type { Ask, ContextAsk, EngineExtras, EvictionOrder, KvType, Rung } from '#domain/placement-terms.js';

export const GOALS = ['quality', 'fast', 'resident'] as const;
export type Goal = (typeof GOALS)[number];
export const QUEUE_ORDERS = ['eta', 'fifo', 'smart'] as const;
export type QueueOrder = (typeof QUEUE_ORDERS)[number];

/** Every knob with its value, after all levels were laid over one another. Seconds, bytes and counts as named. */
export interface EffectiveSettings extends EngineExtras {
  readonly goal: Goal;
  readonly allowedRungs: readonly Rung[];
  readonly alternatives?: readonly string[];
  readonly quantCeiling: 'auto' | 'off' | readonly string[];
  readonly waitBeforeQuality: boolean;
  readonly priority: number;
  readonly pinned: boolean;
  readonly latencyTargetSeconds?: number;
  readonly overdueAfterSeconds: number;
  readonly maxWaitSeconds: number;
  readonly minResidencySeconds: number;
  readonly idleEvictSeconds: number;
  readonly idleUnloadSeconds?: number;
  /** How long a larger context must have had its room before a resident is reloaded with it. */
  readonly growRoomSeconds: number;
  /** How long a resident keeps the context that it was loaded with, at least. */
  readonly growEverySeconds: number;
  /** Models loaded at start, in order, and kept as room allows. */
  readonly preload?: readonly string[];
  readonly context: ContextAsk | 'low' | 'medium' | 'high';
  readonly kvType: KvType;
  readonly parallel: number;
  readonly gpuLayers?: number;
  readonly cpuMoeLayers?: number;
  readonly gpuBytes?: number;
  readonly ramBytes?: number;
  readonly cpuCores?: number | readonly number[];
  readonly cpuFloorCores?: number;
  readonly cpuPriority?: number;
  readonly evictionOrder: EvictionOrder;
  readonly queueOrder: QueueOrder;
  readonly maxQueue: number;
}

/** An ask that is known by the settings alone, before the call adds to it. */
export type AskOf = (settings: EffectiveSettings) => Ask;
