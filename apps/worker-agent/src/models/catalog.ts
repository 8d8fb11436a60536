import { join } from 'node:path';
import type { CatalogEvent, FoundModel } from '#domain/events/index.js';
import { evolveCatalog, hashKey, initialCatalog, type CatalogState } from '#domain/catalog/catalog.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { Cause, EventLog, NewEvent } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import { applied, batches, differences } from './catalog-changes.js';
import { DescribingReader } from './describing.js';
import { WeightHasher } from './hashing/weight-hasher.js';
import { HeaderReader } from './header-reader.js';
import { ProcessHints } from './hints.js';
import { LookAgain } from './look-again.js';
import { writeMarker } from './marker-files.js';
import { MemoryWriter } from './memory-writer.js';
import { modelRoots, type ModelRoot } from './roots.js';
import { type Scan, scan, type ScannedModel } from './scan.js';
import { type WeightFile, weightFilesOf } from './weight-files-of.js';
import { FolderWatch } from './watch.js';

const HASHES_TOGETHER_MS = 300;
const RETRY_MS = 3000;
/** Programs that name models come and go without a change in any folder. */
const HINTS_MS = 30_000;

export interface CatalogOptions {
  readonly log: EventLog;
  readonly workerId: WorkerId;
  /** Berth's own root; the other stores are found beside it. */
  readonly models: string;
  readonly logger: Logger;
  /** Instead of the roots of this machine. */
  readonly roots?: readonly ModelRoot[];
  readonly cause?: Cause;
  /** Berth's home: what is remembered over a restart lies in `cache`, sidecar markers in `markers`. */
  readonly home?: string;
  /** Whether running programs are asked where models lie; by default only when the roots are this machine's. */
  readonly hints?: ProcessHints;
}

/** What lies on this machine's disks, kept true in `catalog-<workerId>`. */
export interface Catalog {
  count(): number;
  models(): readonly FoundModel[];
  /** Absolute paths of an artifact's files, the first shard first; undefined when it is not there or not whole. */
  filesOf(modelKey: ModelKey, artifact: string): readonly string[] | undefined;
  /**
   * Absolute paths of everything that makes up a model in Berth's own folder, whole or not, but for what another model uses
   * too; undefined when it is not there, or lies elsewhere.
   */
  everyFileOf(modelKey: ModelKey): readonly string[] | undefined;
  /** While an engine loads, the disk is the load's: hashing rests and goes on afterwards. */
  pauseHashing(rest: boolean): void;
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
  private readonly headers: HeaderReader;
  private readonly remembering = new MemoryWriter(
    () => this.headers.save(),
    (error) =>
      this.options.logger.warn(
        { err: error },
        'headers could not be remembered; the next start reads them again',
      ),
  );
  private readonly describing = new DescribingReader();
  private readonly hasher: WeightHasher;
  private readonly hints: ProcessHints | undefined;
  private readonly home: string | undefined;
  private readonly again = new LookAgain(() => void this.rescan());
  private readonly watch = new FolderWatch(() => this.again.changed());
  private readonly roots: readonly ModelRoot[];
  private readonly asking: NodeJS.Timeout;
  private hinted = '';
  private found = new Map<ModelKey, ScannedModel>();
  private state: CatalogState | undefined;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private toldOfCut = false;
  private writing: NodeJS.Timeout | undefined;
  private unsettled: ReadonlySet<ModelKey> = new Set();
  private weights: readonly WeightFile[] = [];

  constructor(private readonly options: CatalogOptions) {
    const { BERTH_HOME: home = '' } = process.env;
    this.home = options.home ?? (home === '' ? undefined : home);
    const cache = (name: string) => (this.home === undefined ? undefined : join(this.home, 'cache', name));
    this.headers = new HeaderReader(cache('headers.json'));
    this.roots = options.roots ?? modelRoots(options.models, process.env);
    this.hints = options.hints ?? (options.roots ? undefined : new ProcessHints(cache('hints.json')));
    const memory = cache('hashes.json');
    this.hasher = new WeightHasher({
      log: options.logger,
      onHashed: () => this.writeSoon(),
      ...(memory === undefined ? {} : { memory }),
    });
    this.asking = setInterval(() => void this.askPrograms(), HINTS_MS).unref();
  }

  count(): number {
    return this.found.size;
  }

  models(): readonly FoundModel[] {
    return [...this.found.values()].map((scanned) => scanned.model);
  }

  filesOf(modelKey: ModelKey, artifact: string): readonly string[] | undefined {
    const scanned = this.found.get(modelKey);
    const found = scanned?.model.artifacts.find((a) => a.label === artifact);
    // Whatever was decided: whoever opens pickled weights runs what they contain.
    if (found?.complete !== true || found.format === 'pickle') return undefined;
    return scanned?.files.get(artifact);
  }

  everyFileOf(modelKey: ModelKey): readonly string[] | undefined {
    const scanned = this.found.get(modelKey);
    if (scanned?.model.root !== 'models') return undefined;
    const pathsOf = ({ files, attached }: ScannedModel) => [
      ...[...files.values()].flat(),
      ...attached.values(),
    ];
    const others = new Set([...this.found.values()].filter((other) => other !== scanned).flatMap(pathsOf));
    return [...new Set(pathsOf(scanned))].filter((path) => !others.has(path));
  }

  pauseHashing(rest: boolean): void {
    this.hasher.pause(rest);
  }

  rescan(): Promise<void> {
    this.running = this.running.then(async () => {
      if (this.stopped) return;
      try {
        await this.look();
      } catch (error) {
        this.options.logger.error({ err: error }, 'the model folders could not be scanned');
        this.again.later(RETRY_MS);
      }
    });
    return this.running;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.asking);
    this.again.stop();
    clearTimeout(this.writing);
    this.watch.close();
    await this.running;
    await this.hasher.stop();
    await this.remembering.now();
    await this.headers.close();
  }

  private async look(): Promise<void> {
    let found = await this.scanned();
    // A marker that was put right is read again, so that the log is told once.
    if (await this.putMarkersRight(found.scan.models, found.roots)) found = await this.scanned();
    const { models, folders, stamps, cutRoots } = found.scan;
    if (this.stopped) return;
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
    const sidecars = this.sidecars === undefined ? [] : [this.sidecars];
    const added = this.watch.set([...folders, ...sidecars]);
    this.unsettled = unsettled;
    this.weights = weightFilesOf([...next.values()], stamps);
    await this.hasher.want(this.weights);
    const written = await this.write(unsettled);
    if (!written) this.again.later(RETRY_MS);
    else if (unsettled.size > 0 || added) this.again.later();
    this.remembering.changed();
  }

  private get sidecars(): string | undefined {
    return this.home === undefined ? undefined : join(this.home, 'markers');
  }

  private async scanned(): Promise<{ readonly scan: Scan; readonly roots: readonly ModelRoot[] }> {
    const hinted = (await this.hints?.roots(this.roots)) ?? [];
    this.hinted = keysOf(hinted);
    const roots = [...this.roots, ...hinted];
    const { sidecars } = this;
    const readers = {
      headers: this.headers,
      describing: this.describing,
      ...(sidecars === undefined ? {} : { sidecars }),
    };
    return { scan: await scan(roots, readers, Date.now), roots };
  }

  /** Looks again when programs name other models than before. */
  private async askPrograms(): Promise<void> {
    const hinted = await this.hints?.roots(this.roots).catch(() => undefined);
    if (hinted !== undefined && keysOf(hinted) !== this.hinted) await this.rescan();
  }

  /** @returns whether a marker was written. */
  private async putMarkersRight(
    models: readonly ScannedModel[],
    roots: readonly ModelRoot[],
  ): Promise<boolean> {
    let written = false;
    for (const { model, rederived } of models) {
      if (rederived === undefined || this.sidecars === undefined) continue;
      // Only in Berth's own root are folders ours to write; bare files share theirs.
      const root = roots.find(({ name }) => name === 'models' && name === model.root);
      const folder = root === undefined || model.path === '.' ? undefined : join(root.path, model.path);
      const { marker, beside } = rederived;
      try {
        written = (await writeMarker(marker, model.modelKey, beside, folder, this.sidecars)) || written;
      } catch (error) {
        this.options.logger.warn({ err: error, model: model.modelKey }, 'its marker could not be put right');
      }
    }
    return written;
  }

  /** Hashes come one by one; they are written together. */
  private writeSoon(): void {
    if (this.stopped || this.writing !== undefined) return;
    this.writing = setTimeout(() => {
      this.writing = undefined;
      this.running = this.running.then(async () => {
        if (this.stopped) return;
        const written = await this.write(this.unsettled).catch(() => false);
        // The next look writes what is not said yet.
        if (!written) this.again.later(RETRY_MS);
      });
    }, HASHES_TOGETHER_MS).unref();
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
      const events = [...differences(state, this.found, unsettled), ...this.unsaidHashes(state)];
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
          { count: batch.length, models: batch.map((e) => `${e.type} ${e.data.modelKey}`).slice(0, 20) },
          'models on disk changed',
        );
      }
      if (this.state !== undefined) return true;
    }
    return false;
  }

  /** Hashes that are known here, and that the log does not have. */
  private unsaidHashes(state: CatalogState): readonly CatalogEvent[] {
    return this.weights.flatMap(({ modelKey, name, file }): readonly CatalogEvent[] => {
      const hashed = this.hasher.hashOf(file);
      if (hashed === undefined || state.hashes.get(hashKey(modelKey, name))?.sha256 === hashed.sha256)
        return [];
      const { bytes, sha256, seconds } = hashed;
      return [{ type: 'WeightsHashed', data: { modelKey, file: name, bytes, sha256, seconds } }];
    });
  }

  private newEvent(event: CatalogEvent, revision: number): NewEvent<CatalogEvent> {
    const { workerId, cause } = this.options;
    const id = derivedId('catalog', workerId, String(revision), event.type, event.data.modelKey);
    return { id, event, cause: cause ?? { correlationId: id, causationId: id } };
  }
}

const keysOf = (roots: readonly ModelRoot[]): string =>
  roots.map((root) => `${root.name} ${root.named?.model ?? root.path}`).join('\n');
