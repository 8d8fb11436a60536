import type { ResidentId } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';
import { EnginePool } from './engine-pool.js';

/** Connections to engines: a pool for each. */
export class Engines {
  readonly #pools = new Map<ResidentId, EnginePool>();
  readonly #keys = new Map<ResidentId, string>();
  /** Routes that an engine's probe promised and that it has not. */
  readonly #lacking = new Map<ResidentId, Set<string>>();
  readonly #keyOf: (id: ResidentId) => string;

  constructor(keyOf: (id: ResidentId) => string) {
    this.#keyOf = keyOf;
  }

  /** What an engine asks of its callers. */
  key(id: ResidentId): string {
    let key = this.#keys.get(id);
    if (key === undefined) {
      key = this.#keyOf(id);
      this.#keys.set(id, key);
    }
    return key;
  }

  /** @throws when the resident has no port, which a ready one has. */
  of(resident: Resident): EnginePool {
    const { residentId: id, port } = resident;
    if (port === undefined) throw new Error(`Resident ${id} is ready and has no port.`);
    const known = this.#pools.get(id);
    if (known?.port === port) return known;
    known?.close();
    const pool = new EnginePool(port);
    this.#pools.set(id, pool);
    return pool;
  }

  lacks(id: ResidentId, route: string): boolean {
    return this.#lacking.get(id)?.has(route) ?? false;
  }

  noteLacking(id: ResidentId, route: string): void {
    this.#lacking.set(id, (this.#lacking.get(id) ?? new Set()).add(route));
  }

  forget(id: ResidentId): void {
    this.#lacking.delete(id);
    this.#keys.delete(id);
    this.#pools.get(id)?.close();
    this.#pools.delete(id);
  }

  close(): void {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    for (const pool of pools) pool.destroy();
  }
}
