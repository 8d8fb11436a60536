import type { Attachment, FoundModel } from '#domain/events/catalog-events.js';
import { whyExtrasRefused } from '#domain/engine-arguments.js';
import type { EngineOnWorker } from '#domain/events/worker-events.js';
import type { EngineExtras, ModelKind } from '#domain/placement-terms.js';
import { memo } from './memo.js';
import type { OffloadOrder } from './weights.js';

/** Newer llama.cpp counts the output as the first layer; an engine that does not says so. */
export const offloadOrderOf = (engine: Pick<EngineOnWorker, 'capabilities'>): OffloadOrder =>
  engine.capabilities.includes('blocks-first') ? 'blocks-first' : 'output-first';

const NO_ATTACHMENTS: readonly Attachment[] = [];

/** What goes with a model and is loaded beside it: only what the engine says that it opens (`projector`, `adapter`). */
export const attachmentsOf = (
  { attachments }: Pick<FoundModel, 'attachments'>,
  { capabilities }: Pick<EngineOnWorker, 'capabilities'>,
): readonly Attachment[] =>
  attachments?.filter((a) => a.broken === undefined && capabilities.includes(a.role)) ?? NO_ATTACHMENTS;

export interface EngineQuestion {
  readonly kind: ModelKind;
  readonly gpu: boolean;
  /** Tensors are placed one by one: experts in RAM, or several devices. */
  readonly split: boolean;
}

type EngineAnswer =
  { readonly ok: true; readonly engine: EngineOnWorker } | { readonly ok: false; readonly reason: string };

/** The first engine, in order of preference, that can do what the plan needs; else why none can. */
export function engineFor(engines: readonly EngineOnWorker[], question: EngineQuestion): EngineAnswer {
  const answers = answersOf(engines);
  const key = `${question.kind}${question.gpu ? ' gpu' : ''}${question.split ? ' split' : ''}`;
  const known = answers.get(key);
  if (known) return known;
  const answer = firstAble(engines, question);
  answers.set(key, answer);
  return answer;
}

const answersOf = memo((_: readonly EngineOnWorker[]) => new Map<string, EngineAnswer>());

function firstAble(engines: readonly EngineOnWorker[], question: EngineQuestion): EngineAnswer {
  const needs = [question.kind, ...(question.gpu ? ['gpu'] : []), ...(question.split ? ['moe-split'] : [])];
  const engine = engines.find((e) => needs.every((need) => e.capabilities.includes(need)));
  if (engine) return { ok: true, engine };
  if (engines.length === 0) return { ok: false, reason: 'no engine is installed on this worker' };
  const have = engines
    .map((e) => `${e.kind} lacks ${needs.filter((need) => !e.capabilities.includes(need)).join(', ')}`)
    .join('; ');
  return { ok: false, reason: `no engine of this worker can do it: ${have}` };
}

/** Engines that take what the settings pass on to them; the list itself when they pass on nothing. */
export function enginesTaking(
  engines: readonly EngineOnWorker[],
  extras: EngineExtras,
): readonly EngineOnWorker[] {
  if (!extras.engineArgs && !extras.engineEnv) return engines;
  return engines.filter(({ kind }) => whyExtrasRefused(kind, extras) === undefined);
}

/** Why none of them does, when there is one at all. */
export const whyNoneTakes = (engines: readonly EngineOnWorker[], extras: EngineExtras): string =>
  engines.map(({ kind }) => whyExtrasRefused(kind, extras) ?? '').join('; ');
