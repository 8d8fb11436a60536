import type { Recorded } from '#domain/events/envelope.js';
import type { SettingsEvent } from '#domain/events/other-events.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import { evolveSettings, initialSettings, type SettingsState } from '#domain/settings/settings.js';
import { patchOf } from '#placement/knobs.js';
import type { LevelPatches } from '#placement/setting-levels.js';

/** What was set for the fleet, for workers and for pairs, folded from their streams. */
export class FoldedSettings {
  readonly #scopes = new Map<string, SettingsState>();
  #version = 0;

  /** Rises with every change: what was worked out under another is out of date. */
  get version(): number {
    return this.#version;
  }

  of(scope: string): SettingsState | undefined {
    return this.#scopes.get(scope);
  }

  /** The levels above a call of a model on a worker. */
  levels(worker: WorkerId | undefined, model: ModelKey): LevelPatches {
    const fleet = this.#scopes.get('fleet');
    const ofWorker = worker === undefined ? undefined : this.#scopes.get(worker);
    const pair = worker === undefined ? undefined : this.#scopes.get(`${worker}~${model}`);
    return {
      ...(fleet ? { fleet: patchOf(fleet, 'fleet') } : {}),
      ...(ofWorker ? { worker: patchOf(ofWorker, 'worker') } : {}),
      ...(pair ? { pair: patchOf(pair, 'pair') } : {}),
    };
  }

  fold(scope: string, recorded: Recorded<SettingsEvent>): void {
    const before = this.#scopes.get(scope) ?? initialSettings(scope);
    const state = evolveSettings(before, recorded);
    if (state === before) return;
    this.#scopes.set(scope, state);
    this.#version += 1;
  }
}
