import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { CatalogEvent, FoundModel } from '#domain/events/index.js';
import { evolveCatalog, initialCatalog, type CatalogState } from '#domain/catalog/catalog.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { Cause, EventLog, NewEvent } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import { HeaderReader } from './header-reader.js';
import { modelRoots, type ModelRoot } from './roots.js';
import { scan, type ScannedModel } from './scan.js';
import { FolderWatch } from './watch.js';

const DEBOUNCE_MS = 300;
/** A folder that changes all the time is looked at this often. */
const LONGEST_WAIT_MS = 1000;
const RESCAN_MS = 600_000;
const RETRY_MS = 3000;
/** Servers refuse an append above 1 MiB. */
const BATCH_BYTES = 512 * 1024;

export interface CatalogOptions {
  readonly log: EventLog;
  readonly workerId: WorkerId;
  /** Berth's own root; the other stores are found beside it. */
  readonly models: string;
  readonly logger: Logger;
  /** Instead of the roots of this machine. */
  readonly roots?: readonly ModelRoot[];
  readonly cause?: Cause;
  /** File in which headers are remembered over a restart; default `<BERTH_HOME>/cache/headers.json`. */
  readonly memory?: string;
}

/** What lies on this machine's disks, kept true in `catalog-<workerId>`. */
export interface Catalog {
  count(): number;
  models(): readonly FoundModel[];
  /** Absolute paths of an artifact's files, the first shard first; undefined when it is not there or not whole. */
  filesOf(modelKey: ModelKey, artifact: string): readonly string[] | undefined;
  /** Looks again now; resolves when what was found is in the log, or the log did not take it. */
  rescan(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Scans, appends what differs from what the log says, and follows changes on disk from then on. Resolves after the
 * first scan; a log that is out of reach is tried again in the background.
 */
export async function startCatalog(options: CatalogOptions): Promise<Catalog> {
  const catalog = new DiskCatalog(options);
  await catalog.rescan();
  return catalog;
}

class DiskCatalog implements Catalog {
  private readonly reader: HeaderReader;
  private readonly watch = new FolderWatch(() => this.changed());
  private readonly roots: readonly ModelRoot[];
  private readonly every: NodeJS.Timeout;
  private found = new Map<ModelKey, ScannedModel>();
  private state: CatalogState | undefined;
  private running: Promise<void> = Promise.resolve();
  private debounce: NodeJS.Timeout | undefined;
  private firstChangeMs: number | undefined;
  private stopped = false;
  private toldOfCut = false;

  constructor(private readonly options: CatalogOptions) {
    const { BERTH_HOME: home = '' } = process.env;
    this.reader = new HeaderReader(
      options.memory ?? (home === '' ? undefined : join(home, 'cache', 'headers.json')),
    );
    this.roots = options.roots ?? modelRoots(options.models, process.env);
    this.every = setInterval(() => void this.rescan(), RESCAN_MS).unref();
  }

  count(): number {
    return this.found.size;
  }

  models(): readonly FoundModel[] {
    return [...this.found.values()].map((scanned) => scanned.model);
  }

  filesOf(modelKey: ModelKey, artifact: string): readonly string[] | undefined {
    const scanned = this.found.get(modelKey);
    const complete = scanned?.model.artifacts.find((a) => a.label === artifact)?.complete === true;
    return complete ? scanned.files.get(artifact) : undefined;
  }

  rescan(): Promise<void> {
    this.running = this.running.then(async () => {
      if (this.stopped) return;
      try {
        await this.look();
      } catch (error) {
        this.options.logger.error({ err: error }, 'the model folders could not be scanned');
        this.later(RETRY_MS);
      }
    });
    return this.running;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.every);
    clearTimeout(this.debounce);
    this.watch.close();
    await this.running;
    await this.reader.close();
  }

  private changed(): void {
    const now = performance.now();
    this.firstChangeMs ??= now;
    this.later(Math.max(0, Math.min(DEBOUNCE_MS, this.firstChangeMs + LONGEST_WAIT_MS - now)));
  }

  private later(delayMs: number): void {
    clearTimeout(this.debounce);
    if (this.stopped) return;
    this.debounce = setTimeout(() => {
      this.firstChangeMs = undefined;
      void this.rescan();
    }, delayMs).unref();
  }

  private async look(): Promise<void> {
    const { models, folders, cutRoots } = await scan(this.roots, this.reader, Date.now);
    if (this.stopped) return;
    await this.reader.save().catch((error: unknown) => {
      this.options.logger.warn(
        { err: error },
        'headers could not be remembered; the next start reads them again',
      );
    });
    if (cutRoots.length > 0 && !this.toldOfCut) {
      this.toldOfCut = true;
      this.options.logger.warn({ roots: cutRoots }, 'these hold more folders than a scan opens (4,096)');
    }
    const next = new Map<ModelKey, ScannedModel>();
    for (const scanned of models) {
      const { modelKey } = scanned.model;
      // What is being written is left as it was known until it is whole or stays broken.
      const kept = scanned.settling ? this.found.get(modelKey) : scanned;
      if (kept !== undefined) next.set(modelKey, kept);
    }
    this.found = next;
    const unsettled = new Set(models.filter((s) => s.settling).map((s) => s.model.modelKey));
    // Root folders that are not there yet were opened too, in vain: they are watched for.
    const added = this.watch.set(folders);
    const written = await this.write(unsettled);
    if (!written) this.later(RETRY_MS);
    else if (unsettled.size > 0 || added) this.later(DEBOUNCE_MS);
  }

  /** Appends the differences. @returns false when the log did not take them. */
  private async write(unsettled: ReadonlySet<ModelKey>): Promise<boolean> {
    const { log, workerId, logger } = this.options;
    const stream = streams.catalog(workerId);
    for (let attempt = 0; attempt < 3; attempt++) {
      let state = (this.state ??= await log.fold<CatalogState, CatalogEvent>(
        stream,
        initialCatalog(workerId),
        evolveCatalog,
      ));
      const events = differences(state, this.found, unsettled);
      for (const batch of batches(events)) {
        const outcome = await log.append(
          stream,
          batch.map((event, i) => this.newEvent(event, state.revision + 1 + i)),
          state.revision < 0 ? 'no-stream' : state.revision,
        );
        if (!outcome.ok) {
          // Another wrote, or it is not known whether this was written: what the log says now decides.
          this.state = undefined;
          logger.warn({ failure: outcome.error }, 'found models could not be written to the log yet');
          if (outcome.error.kind === 'conflict') break;
          return false;
        }
        for (const event of batch) state = applied(state, event);
        this.state = state;
        logger.info(
          { models: batch.map((e) => `${e.type} ${e.data.modelKey}`).slice(0, 20), count: batch.length },
          'models on disk changed',
        );
      }
      if (this.state !== undefined) return true;
    }
    return false;
  }

  private newEvent(event: CatalogEvent, revision: number): NewEvent<CatalogEvent> {
    const { workerId, cause } = this.options;
    const id = derivedId('catalog', workerId, String(revision), event.type, event.data.modelKey);
    return { id, event, cause: cause ?? { correlationId: id, causationId: id } };
  }
}

/** What must be written so that the log says what was found. */
export function differences(
  state: CatalogState,
  found: ReadonlyMap<ModelKey, ScannedModel>,
  unsettled: ReadonlySet<ModelKey>,
): readonly CatalogEvent[] {
  const events: CatalogEvent[] = [];
  for (const [key, { model }] of found) {
    const known = state.models.get(key);
    if (known === undefined) events.push({ type: 'ModelFound', data: model });
    else if (!unsettled.has(key) && !isDeepStrictEqual(asWritten(model), asWritten(known))) {
      events.push({ type: 'ModelChanged', data: model });
    }
  }
  for (const [key, known] of state.models) {
    if (found.has(key) || unsettled.has(key)) continue;
    events.push({ type: 'ModelGone', data: { modelKey: key, path: known.path } });
  }
  return events;
}

/** As it comes back from the log: without fields that are undefined. */
const asWritten = (model: FoundModel): unknown => JSON.parse(JSON.stringify(model));

/** The state after an event of our own was appended at the next revision. */
function applied(state: CatalogState, event: CatalogEvent): CatalogState {
  return evolveCatalog(state, {
    event,
    id: '',
    stream: streams.catalog(state.workerId),
    revision: state.revision + 1,
    position: { commit: 0n, prepare: 0n },
    metadata: { $correlationId: '', $causationId: '', at: '', by: '', schemaVersion: 1 },
  });
}

function* batches(events: readonly CatalogEvent[]): Iterable<readonly CatalogEvent[]> {
  let batch: CatalogEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    const size = Buffer.byteLength(JSON.stringify(event.data));
    if (batch.length > 0 && bytes + size > BATCH_BYTES) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(event);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
