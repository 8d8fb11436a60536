import { type Artifact } from '#domain/events/catalog-events.js';
import { type EngineOnWorker } from '#domain/events/worker-events.js';
import { type DeviceId } from '#domain/ids.js';
import { type ModelKind, type Rung, RUNGS } from '#domain/placement-terms.js';
import { hasExperts } from './weights.js';

/** One way to place an artifact, before its context is chosen. */
export interface Shape {
  readonly artifact: Artifact;
  /** Place in the approved list: 0 is the selected artifact. */
  readonly q: number;
  readonly rung: Rung;
  readonly engine: EngineOnWorker;
  readonly devices: readonly DeviceId[];
  /** −1 stands for all, until the geometry is known. */
  readonly gpuLayers: number;
  readonly cpuMoeLayers: number;
  readonly weightsInRam: boolean;
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

/** Newer llama.cpp counts the output as the first layer; an engine that does not says so. */
export const offloadOrderOf = (engine: EngineOnWorker): 'blocks-first' | 'output-first' =>
  engine.capabilities.includes('blocks-first') ? 'blocks-first' : 'output-first';

export interface EngineQuestion {
  readonly kind: ModelKind;
  readonly gpu: boolean;
  readonly moeSplit: boolean;
}

/** The first engine, in order of preference, that can do what the plan needs; else why none can. */
export function engineFor(
  engines: readonly EngineOnWorker[],
  question: EngineQuestion,
): { readonly ok: true; readonly engine: EngineOnWorker } | { readonly ok: false; readonly reason: string } {
  const needs = [
    question.kind,
    ...(question.gpu ? ['gpu'] : []),
    ...(question.moeSplit ? ['moe-split'] : []),
  ];
  const engine = engines.find((e) => needs.every((need) => e.capabilities.includes(need)));
  if (engine) return { ok: true, engine };
  if (engines.length === 0) return { ok: false, reason: 'no engine is installed on this worker' };
  const have = engines
    .map((e) => `${e.kind} lacks ${needs.filter((need) => !e.capabilities.includes(need)).join(', ')}`)
    .join('; ');
  return { ok: false, reason: `no engine of this worker can do it: ${have}` };
}

export interface LadderQuestion {
  readonly approved: readonly Artifact[];
  readonly kind: ModelKind;
  readonly engines: readonly EngineOnWorker[];
  readonly accelerators: readonly DeviceId[];
  readonly allowedRungs?: readonly Rung[];
}

/** Every rung of every approved artifact, in the ladder's order, as shapes to try or with the reason why not. */
export function ladderOf(question: LadderQuestion): readonly Step[] {
  return question.approved.flatMap((artifact, q) => artifactSteps(question, artifact, q));
}

function artifactSteps(question: LadderQuestion, artifact: Artifact, q: number): readonly Step[] {
  const no = (rung: Rung, reason: string, terminal?: NotOffered['terminal']): Step => ({
    kind: 'not-offered',
    not: { artifact, q, rung, reason, ...(terminal ? { terminal } : {}) },
  });
  const bad = artifact.broken ?? (artifact.complete ? undefined : 'some of its files are missing');
  const allowed = RUNGS.filter((rung) => question.allowedRungs?.includes(rung) ?? true);
  if (bad !== undefined) return [no(allowed[0] ?? 'ram-only', bad, 'bad_artifact')];
  const steps: Step[] = [];
  for (const rung of RUNGS) {
    if (!allowed.includes(rung)) steps.push(no(rung, 'the settings or the call do not allow it'));
    else steps.push(...rungSteps(question, artifact, q, rung, no));
  }
  return steps;
}

function rungSteps(
  question: LadderQuestion,
  artifact: Artifact,
  q: number,
  rung: Rung,
  no: (rung: Rung, reason: string, terminal?: NotOffered['terminal']) => Step,
): readonly Step[] {
  const { accelerators, engines, kind } = question;
  if (rung === 'ram-only') {
    const chosen = engineFor(engines, { kind, gpu: false, moeSplit: false });
    if (!chosen.ok) return [no(rung, chosen.reason, 'incompatible_engine')];
    const shape: Shape = {
      artifact,
      q,
      rung,
      engine: chosen.engine,
      devices: [],
      gpuLayers: 0,
      cpuMoeLayers: 0,
      weightsInRam: true,
    };
    return [{ kind: 'shape', shape }];
  }
  if (accelerators.length === 0) return [no(rung, 'the worker has no accelerator')];
  if (rung === 'moe' && !(artifact.geometry && hasExperts(artifact.geometry)))
    return [no(rung, 'the model has no experts to split')];
  return [no(rung, 'not planned yet on accelerators')];
}
