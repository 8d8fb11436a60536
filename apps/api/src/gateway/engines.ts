import { Client, Pool, type Dispatcher } from 'undici';
import type { ResidentId } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';

/** Engines close idle connections after 5 s: ours are given up before. */
const KEEP_ALIVE_MS = 4000;
const CONNECT_TIMEOUT_MS = 5000;
/** Deadlines are the caller's and the queue's: a long prompt may be silent for minutes. */
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 } as const;
const OPTIONS = {
  ...NO_TIMEOUTS,
  pipelining: 1,
  keepAliveTimeout: KEEP_ALIVE_MS,
  keepAliveMaxTimeout: KEEP_ALIVE_MS,
  connect: { timeout: CONNECT_TIMEOUT_MS },
} as const;

/** Connections to engines: a pool each, without a bound of its own (slots bound the calls). */
export class Engines {
  readonly #pools = new Map<ResidentId, { readonly pool: Pool; readonly port: number }>();
  readonly #keys = new Map<ResidentId, string>();
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

  pooled(resident: Resident): Dispatcher {
    const { residentId: id } = resident;
    const port = portOf(resident);
    const known = this.#pools.get(id);
    if (known?.port === port) return known.pool;
    if (known) void known.pool.close();
    const pool = new Pool(origin(port), OPTIONS);
    this.#pools.set(id, { pool, port });
    return pool;
  }

  /** A connection that nobody used before; closed when its one request has ended. */
  fresh(resident: Resident): Client {
    return new Client(origin(portOf(resident)), { ...OPTIONS, pipelining: 0 });
  }

  forget(id: ResidentId): void {
    this.#keys.delete(id);
    const known = this.#pools.get(id);
    this.#pools.delete(id);
    if (known) void known.pool.close();
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map(({ pool }) => pool.destroy()));
  }
}

const origin = (port: number): string => `http://127.0.0.1:${port}`;

function portOf(resident: Resident): number {
  if (resident.port === undefined)
    throw new Error(`Resident ${resident.residentId} is ready and has no port.`);
  return resident.port;
}
