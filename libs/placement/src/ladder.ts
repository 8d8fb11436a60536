import type { Artifact } from '#domain/events/catalog-events.js';
import { sameExtras } from '#domain/engine-arguments.js';
import type { EngineOnWorker } from '#domain/events/worker-events.js';
import type { DeviceId } from '#domain/ids.js';
import { type EngineExtras, type ModelKind, type Rung, RUNGS, sameList } from '#domain/placement-terms.js';
import { engineFor, enginesTaking, whyNoneTakes } from './engine-choice.js';
import { memo } from './memo.js';
import { hasExperts } from './weights.js';

/** Numbers that an admin fixed: they skip the ladder, and are honoured or refused. */
export interface Pins {
  readonly gpuLayers?: number;
  readonly cpuMoeLayers?: number;
  readonly gpuBytes?: number;
  readonly ramBytes?: number;
}

/** One way to place an artifact on named devices; how many layers go where follows with the context. */
export interface Shape {
  readonly artifact: Artifact;
  /** Place in the approved list: 0 is the selected artifact. */
  readonly q: number;
  readonly rung: Rung;
  readonly engine: EngineOnWorker;
  readonly devices: readonly DeviceId[];
  readonly pins?: Pins;
  /** Looked at only when no shape before it of this artifact and rung was admitted. */
  readonly fallback: boolean;
}

export interface NotOffered {
  readonly artifact: Artifact;
  readonly q: number;
  readonly rung: Rung;
  readonly reason: string;
  /** Set when nothing of this artifact can ever be offered. */
  readonly terminal?: 'bad_artifact' | 'incompatible_engine';
}

export type Step =
  | { readonly kind: 'shape'; readonly shape: Shape }
  | { readonly kind: 'not-offered'; readonly not: NotOffered };

export interface LadderQuestion {
  /** Best first. */
  readonly approved: readonly Artifact[];
  readonly kind: ModelKind;
  readonly engines: readonly EngineOnWorker[];
  /** Most room first. */
  readonly accelerators: readonly DeviceId[];
  /** The same for plans over several, most room that could be had first; absent: as above. */
  readonly together?: readonly DeviceId[];
  readonly allowedRungs?: readonly Rung[];
  readonly pins?: Pins;
  /** What the engine is given beside the plan. */
  readonly extras?: EngineExtras;
}

/** Every rung of every approved artifact, in the ladder's order, as shapes to try or with the reason why not. */
export function ladderOf(question: LadderQuestion): readonly Step[] {
  const kept = lastLadder(question.approved);
  if (kept.question && isSameQuestion(kept.question, question)) return kept.steps;
  const four = question.approved.findIndex((a, q) => q > 0 && isFourBit(a));
  const takers = enginesTaking(question.engines, question.extras ?? NO_EXTRAS);
  const steps: Step[] = [];
  question.approved.forEach((artifact, q) => {
    steps.push(...new ArtifactLadder(question, takers, artifact, q, four).steps());
  });
  kept.question = question;
  kept.steps = steps;
  return steps;
}

/** A model that waits is decided on again and again: its ladder is the same until its devices change their order. */
const lastLadder = memo((_: readonly Artifact[]): { question?: LadderQuestion; steps: readonly Step[] } => ({
  steps: [],
}));

const NO_EXTRAS: EngineExtras = {};

const isSameQuestion = (a: LadderQuestion, b: LadderQuestion): boolean =>
  a.kind === b.kind &&
  a.engines === b.engines &&
  !a.pins &&
  !b.pins &&
  sameExtras(a.extras ?? NO_EXTRAS, b.extras ?? NO_EXTRAS) &&
  sameList(a.allowedRungs, b.allowedRungs) &&
  sameList(a.accelerators, b.accelerators) &&
  sameList(a.together ?? a.accelerators, b.together ?? b.accelerators);

/** `Q4_K_M`, `IQ4_XS`, `MXFP4`: a form of about four bits per weight. */
export const isFourBit = (artifact: Artifact): boolean =>
  /(^|[^0-9])(i?q4|mxfp4|nvfp4|int4|4bit)/i.test(artifact.label);

// The same lists for every rung and artifact, so that what is looked up by a list is found.
const NO_DEVICES: readonly DeviceId[] = [];
const eachAlone = memo((devices: readonly DeviceId[]): readonly (readonly DeviceId[])[] =>
  devices.map((device) => [device]),
);
/** The first two, the first three, and so on. */
const ofTheFirst = memo((devices: readonly DeviceId[]): readonly (readonly DeviceId[])[] =>
  devices.slice(1).map((_, i) => devices.slice(0, i + 2)),
);

class ArtifactLadder {
  constructor(
    private readonly question: LadderQuestion,
    /** Engines that take what the settings pass on to them. */
    private readonly takers: readonly EngineOnWorker[],
    private readonly artifact: Artifact,
    private readonly q: number,
    /** Place of the 4-bit form that the rung `4bit` of the selected artifact stands for; negative without one. */
    private readonly fourBitPlace: number,
  ) {}

  steps(): readonly Step[] {
    const { allowedRungs, pins } = this.question;
    const broken = whyBroken(this.artifact);
    const unread = whyUnread(this.artifact, this.question.engines);
    const allowed = RUNGS.filter((rung) => allowedRungs?.includes(rung) ?? true);
    if (broken !== undefined) return [this.no(allowed[0] ?? 'ram-only', broken, 'bad_artifact')];
    if (unread !== undefined) return [this.no(allowed[0] ?? 'ram-only', unread, 'incompatible_engine')];
    if (pins) return this.pinned(pins, allowed);
    return RUNGS.flatMap((rung) =>
      allowed.includes(rung) ? this.rung(rung) : [this.no(rung, 'the settings or the call do not allow it')],
    );
  }

  private rung(rung: Rung): readonly Step[] {
    const { accelerators } = this.question;
    if (rung === 'ram-only') return [this.shape(rung, NO_DEVICES)];
    if (accelerators.length === 0) return [this.no(rung, 'the worker has no accelerator')];
    switch (rung) {
      case 'gpu-only':
        if (this.q === this.fourBitPlace && this.fourBitAllowed())
          return [this.no(rung, 'looked at as the 4-bit form of the selected artifact')];
        return this.onCards(rung, this.artifact, this.q);
      case '4bit': {
        const four = this.question.approved[this.fourBitPlace];
        if (this.q > 0) return [];
        if (!four) return [this.no(rung, 'no 4-bit form of it is approved')];
        const broken = whyBroken(four) ?? whyUnread(four, this.question.engines);
        return broken === undefined
          ? this.onCards(rung, four, this.fourBitPlace)
          : [this.no(rung, `its 4-bit form ${four.label}: ${broken}`)];
      }
      case 'moe':
        if (!this.artifact.geometry) return [this.no(rung, 'its header could not be read')];
        if (!hasExperts(this.artifact.geometry)) return [this.no(rung, 'the model has no experts to split')];
        return this.onCards(rung, this.artifact, this.q);
      case 'max-ram':
      case 'max-gpu':
        if (!this.artifact.geometry) return [this.no(rung, 'its header could not be read')];
        return [
          ...eachAlone(accelerators)
            .slice(0, 1)
            .map((devices) => this.shape(rung, devices)),
          ...(accelerators.length > 1 ? [this.shape(rung, accelerators, true)] : []),
        ];
    }
  }

  private fourBitAllowed(): boolean {
    return this.question.allowedRungs?.includes('4bit') ?? true;
  }

  /** One device first, then the fewest that hold it. */
  private onCards(rung: Rung, artifact: Artifact, q: number): readonly Step[] {
    const { accelerators, together = accelerators } = this.question;
    return [
      ...eachAlone(accelerators).map((devices) => this.shape(rung, devices, false, artifact, q)),
      ...ofTheFirst(together).map((devices) => this.shape(rung, devices, true, artifact, q)),
    ];
  }

  /** Pins name the layers or the bytes: one shape, under the rung that it amounts to. */
  private pinned(pins: Pins, allowed: readonly Rung[]): readonly Step[] {
    const { accelerators, together = accelerators } = this.question;
    const rung = rungOfPins(pins, this.artifact);
    if (!allowed.includes(rung))
      return [this.no(rung, 'the pins of this pair amount to it, and it is not allowed')];
    if (rung === 'ram-only') return [this.shape(rung, [], false, this.artifact, this.q, pins)];
    if (accelerators.length === 0)
      return [this.no(rung, 'layers or bytes are pinned to an accelerator, and the worker has none')];
    const one = eachAlone(accelerators).map((devices) =>
      this.shape(rung, devices, false, this.artifact, this.q, pins),
    );
    const all =
      accelerators.length > 1 ? [this.shape(rung, together, true, this.artifact, this.q, pins)] : [];
    return [...one, ...all];
  }

  private shape(
    rung: Rung,
    devices: readonly DeviceId[],
    fallback = false,
    artifact = this.artifact,
    q = this.q,
    pins?: Pins,
  ): Step {
    const { kind, engines: all, extras = NO_EXTRAS } = this.question;
    if (this.takers.length === 0 && all.length > 0)
      return this.no(
        rung,
        whyNoneTakes(all, extras),
        rung === 'ram-only' ? 'incompatible_engine' : undefined,
      );
    const split = rung === 'moe' || devices.length > 1 || (pins?.cpuMoeLayers ?? 0) > 0;
    const chosen = engineFor(this.takers, { kind, gpu: devices.length > 0, split });
    if (!chosen.ok)
      return this.no(rung, chosen.reason, rung === 'ram-only' ? 'incompatible_engine' : undefined);
    const shape: Shape = { artifact, q, rung, engine: chosen.engine, devices, fallback };
    return { kind: 'shape', shape: pins ? { ...shape, pins } : shape };
  }

  private no(rung: Rung, reason: string, terminal?: NotOffered['terminal']): Step {
    const not = { artifact: this.artifact, q: this.q, rung, reason };
    return { kind: 'not-offered', not: terminal ? { ...not, terminal } : not };
  }
}

const whyBroken = (artifact: Artifact): string | undefined =>
  artifact.broken ?? (artifact.complete ? undefined : 'some of its files are missing');

/** GGUF is what every engine here opens; another format needs one that says so. */
const whyUnread = ({ format }: Artifact, engines: readonly EngineOnWorker[]): string | undefined =>
  format === undefined || format === 'gguf' || engines.some((e) => e.capabilities.includes(format))
    ? undefined
    : `no engine of this worker opens ${format}`;

function rungOfPins(pins: Pins, artifact: Artifact): Rung {
  const moe = artifact.geometry !== undefined && hasExperts(artifact.geometry);
  if (pins.cpuMoeLayers !== undefined && pins.cpuMoeLayers > 0) return 'moe';
  if (pins.gpuLayers === 0 || (pins.gpuLayers === undefined && pins.gpuBytes === 0)) return 'ram-only';
  if (pins.gpuLayers !== undefined) {
    const blocks = artifact.geometry?.blocks.length ?? 0;
    return pins.gpuLayers < 0 || pins.gpuLayers > blocks ? 'gpu-only' : 'max-gpu';
  }
  if (moe && pins.cpuMoeLayers === undefined) return 'moe';
  return pins.gpuBytes === undefined ? 'max-ram' : 'max-gpu';
}
