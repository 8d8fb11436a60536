import type { Attachment } from '#domain/events/catalog-events.js';
import type { DeviceId } from '#domain/ids.js';
import { memo } from './memo.js';
import {
  type Contract,
  type EngineKind,
  engineBuildOf,
  type PlacementClass,
  sameList,
} from '#domain/placement-terms.js';
import type { Amounts } from './amounts.js';
import type { CoreClaim } from './cores.js';
import { DEFAULT_MICRO_BATCH } from './kv.js';
import { attachmentsOf, offloadOrderOf } from './engine-choice.js';
import type { Shape } from './ladder.js';
import type { Layout } from './layout.js';
import { type HeaderPrices, headerPrices } from './header.js';
import { hasFactsOf } from './measured.js';
import { type Need, needOf } from './need.js';
import { priceOfRow } from './need-figures.js';
import { attachedOn, placeOfAttachments } from './need-parts.js';
import type { Plan } from './plan.js';
import { SharedAmounts, sharingRam } from './shared-memory.js';
import type { Snapshot } from './snapshot.js';
import { cannotProject, NOTHING_PROJECTS } from './unprojectable.js';
import type { OffloadOrder } from './weights.js';

export type Claim = Extract<CoreClaim, { ok: true }>;

const buildOf = memo((engine: { readonly kind: EngineKind; readonly build: string }): string =>
  engineBuildOf(engine),
);

/** A plan whose layers are not laid out yet: priced at the layouts that are tried, the last of which is kept. */
export class Draft {
  readonly #snapshot: Snapshot;
  readonly #shape: Shape;
  readonly #claim: Claim;
  readonly #order: OffloadOrder;
  readonly #build: string;
  readonly #flashAttention: boolean;
  readonly #attachments: readonly Attachment[];
  #contextTokens = 0;
  #measured: boolean | undefined;
  #prices: HeaderPrices | undefined;
  #last: DraftedPlan | undefined;

  constructor(snapshot: Snapshot, shape: Shape, claim: Claim) {
    this.#snapshot = snapshot;
    this.#shape = shape;
    this.#claim = claim;
    this.#order = offloadOrderOf(shape.engine);
    this.#build = buildOf(shape.engine);
    this.#flashAttention = flashAttention(snapshot, shape);
    this.#attachments = attachmentsOf(snapshot.input.model, shape.engine);
  }

  /** The same at another context. */
  at(contextTokens: number): this {
    this.#contextTokens = contextTokens;
    this.#prices = undefined;
    this.#last = undefined;
    return this;
  }

  /** Bytes that a layout would take on a device. A search asks for many, and keeps one. */
  price(layout: Layout, deviceId: DeviceId): number {
    const { geometry } = this.#shape.artifact;
    if (!geometry || this.#wasMeasured()) return this.plan(layout).asked.get(deviceId) ?? 0;
    const { devices } = this.#shape;
    const { input, process } = this.#snapshot;
    this.#prices ??= headerPrices(geometry, this.#class(layout));
    const row = devices.indexOf(deviceId) + 1;
    const table = this.#prices.row(layout, devices.length, this.#order, row);
    const asksEngine = input.unprojectable !== NOTHING_PROJECTS;
    const ofProcess = process.of(deviceId, this.#build)?.bytes;
    const holdsAttachments = deviceId === placeOfAttachments(layout, devices);
    return priceOfRow(
      table,
      row,
      asksEngine,
      ofProcess,
      holdsAttachments ? attachedOn(this.#attachments) : 0,
    );
  }

  /** Whether its price may come from a measurement, a projection or an engine's silence, and not from the header alone. */
  #wasMeasured(): boolean {
    if (this.#measured === undefined) {
      const { history, unprojectable } = this.#snapshot.input;
      const { label } = this.#shape.artifact;
      this.#measured = unprojectable.size > 0 || hasFactsOf(history, label);
    }
    return this.#measured;
  }

  plan(layout: Layout): DraftedPlan {
    const last = this.#last;
    if (last && isSameLayout(last.layout, layout)) return last;
    const { input, process } = this.#snapshot;
    const { artifact } = this.#shape;
    const klass = this.#class(layout);
    const need = needOf({
      artifact,
      plan: klass,
      history: input.history,
      process,
      order: this.#order,
      attachments: this.#attachments,
    });
    const projectable = need.fromHeader && !cannotProject(input.unprojectable, klass);
    const own = projectable ? need.exactBytes : need.bytes;
    const sharing = sharingRam(input.worker.devices);
    const asked = sharing.size === 0 ? own : new SharedAmounts(sharing, own);
    const plan = new DraftedPlan(
      this.#snapshot,
      this.#shape,
      this.#claim,
      layout,
      klass,
      need,
      asked,
      projectable,
    );
    this.#last = plan;
    return plan;
  }

  #class(layout: Layout): PlacementClass {
    const { artifact, devices } = this.#shape;
    const { kvType, slots } = this.#snapshot.input.ask;
    const { gpuLayers, cpuMoeLayers, blocksByDevice } = layout;
    const klass = {
      artifact: artifact.label,
      devices,
      gpuLayers,
      cpuMoeLayers,
      kvType,
      contextTokens: this.#contextTokens,
      slots,
      microBatch: DEFAULT_MICRO_BATCH,
      flashAttention: this.#flashAttention,
      engineBuild: this.#build,
    };
    return blocksByDevice ? { ...klass, blocksByDevice } : klass;
  }
}

const isSameLayout = (a: Layout, b: Layout): boolean =>
  a.gpuLayers === b.gpuLayers &&
  a.cpuMoeLayers === b.cpuMoeLayers &&
  sameList(a.blocksByDevice, b.blocksByDevice);

/** A quantised V needs it; on llama-server it also keeps the work buffers from growing with the context. */
const flashAttention = ({ input }: Snapshot, { engine }: Shape): boolean =>
  input.model.kind === 'chat' && (input.ask.kvType !== 'f16' || engine.kind === 'llama-server');

class DraftedPlan implements Plan {
  readonly shape: Shape;
  readonly klass: PlacementClass;
  readonly need: Need;
  readonly asked: Amounts;
  readonly projectable: boolean;
  readonly threads: number;
  readonly layout: Layout;
  readonly #snapshot: Snapshot;
  readonly #claim: Claim;

  constructor(
    snapshot: Snapshot,
    shape: Shape,
    claim: Claim,
    layout: Layout,
    klass: PlacementClass,
    need: Need,
    asked: Amounts,
    projectable: boolean,
  ) {
    this.#snapshot = snapshot;
    this.#claim = claim;
    this.shape = shape;
    this.layout = layout;
    this.klass = klass;
    this.need = need;
    this.asked = asked;
    this.projectable = projectable;
    this.threads = claim.threads;
  }

  /** Made when it is asked for: most plans are only compared. */
  get contract(): Contract {
    const { engine, rung, devices } = this.shape;
    const { model, ask } = this.#snapshot.input;
    const { threads, cores } = this.#claim;
    return {
      kind: model.kind,
      engine: { kind: engine.kind, build: engine.build },
      rung,
      contextTokens: this.klass.contextTokens,
      slots: ask.slots,
      kvType: ask.kvType,
      ...this.layout,
      microBatch: DEFAULT_MICRO_BATCH,
      flashAttention: this.klass.flashAttention,
      threads,
      ...(cores ? { cores } : {}),
      devices,
      ...(ask.engineArgs ? { engineArgs: ask.engineArgs } : {}),
      ...(ask.engineEnv ? { engineEnv: ask.engineEnv } : {}),
    };
  }
}
