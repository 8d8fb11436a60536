import { sameExtras } from '#domain/engine-arguments.js';
import type { Artifact } from '#domain/events/catalog-events.js';
import { type Ask, type ContextAsk, RUNGS } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import { type CallOptions, noOptions } from './model-name.js';
import type { EffectiveSettings } from './settings.js';

/** The low preset, and the smallest context that is ever planned by itself. */
export const FLOOR_TOKENS = 4096;

/**
 * The ask that the settings and the call make together. Knobs that are no reason to reload a resident
 * (goal, priority, waits) are not part of it.
 * @param trainedContextTokens resolves the presets `medium` and `high`; without it they mean `auto`.
 */
export function askOf(
  settings: EffectiveSettings,
  options: CallOptions = noOptions,
  trainedContextTokens?: number,
): Ask {
  const all = RUNGS.every((rung) => settings.allowedRungs.includes(rung));
  return {
    context: contextAsk(settings.context, trainedContextTokens),
    kvType: settings.kvType,
    slots: settings.parallel,
    ...(all ? {} : { allowedRungs: settings.allowedRungs }),
    ...(options.artifact === undefined ? {} : { artifact: options.artifact }),
    ...(settings.gpuLayers === undefined || options.fit ? {} : { gpuLayers: settings.gpuLayers }),
    ...(settings.cpuMoeLayers === undefined || options.fit ? {} : { cpuMoeLayers: settings.cpuMoeLayers }),
    ...(settings.engineArgs ? { engineArgs: settings.engineArgs } : {}),
    ...(settings.engineEnv ? { engineEnv: settings.engineEnv } : {}),
  };
}

function contextAsk(context: EffectiveSettings['context'], trained: number | undefined): ContextAsk {
  if (context === 'low') return trained === undefined ? FLOOR_TOKENS : Math.min(FLOOR_TOKENS, trained);
  if (context === 'medium')
    return trained === undefined
      ? 'auto'
      : Math.max(Math.min(FLOOR_TOKENS, trained), Math.floor(trained / 4));
  if (context === 'high') return trained ?? 'auto';
  return context;
}

/** Artifacts that may serve the ask, best first; the place in the list is the plan's `q`. */
export function approvedArtifacts(
  artifacts: readonly Artifact[],
  settings: Pick<EffectiveSettings, 'quantCeiling' | 'alternatives'>,
  ask: Pick<Ask, 'artifact'>,
): readonly Artifact[] {
  if (ask.artifact !== undefined) return artifacts.filter((a) => sameLabel(a.label, ask.artifact));
  const ceiling = settings.quantCeiling;
  const within =
    ceiling === 'auto' ? artifacts : ceiling === 'off' ? artifacts.slice(0, 1) : pick(artifacts, ceiling);
  if (settings.alternatives === undefined) return within;
  const selected = within[0];
  const rest = pick(within, settings.alternatives).filter((a) => a !== selected);
  return selected ? [selected, ...rest] : rest;
}

const sameLabel = (a: string, b: string | undefined): boolean => a.toLowerCase() === b?.toLowerCase();

const pick = (artifacts: readonly Artifact[], labels: readonly string[]): readonly Artifact[] =>
  labels.flatMap((label) => artifacts.find((a) => sameLabel(a.label, label)) ?? []);

export interface ReuseQuestion {
  readonly ask: Ask;
  readonly approved: readonly Artifact[];
  /** Prompt and output tokens of this call, as far as they are known; 0 without a call. */
  readonly callTokens: number;
  /** The largest context that a reload could give: a resident that has it is not reloaded for more. */
  readonly largestTokens: number;
}

/**
 * Why a resident does not satisfy an ask, in words; undefined when it does. Looks at the ask, never at the rung
 * that was derived for it.
 */
export function whyNotReusable(resident: Resident, question: ReuseQuestion): string | undefined {
  const { ask, approved, callTokens, largestTokens } = question;
  const { contract } = resident;
  if (!approved.some((a) => a.label === resident.artifact)) return `it serves ${resident.artifact}`;
  if (ask.allowedRungs && !ask.allowedRungs.includes(resident.rung)) return `it is placed ${resident.rung}`;
  if (contract.kvType !== ask.kvType) return `its KV cache is ${contract.kvType}, asked is ${ask.kvType}`;
  if (contract.slots < ask.slots) return `it has ${contract.slots} slots, asked are ${ask.slots}`;
  if (ask.gpuLayers !== undefined && ask.gpuLayers !== contract.gpuLayers)
    return `it has ${contract.gpuLayers} GPU layers, pinned are ${ask.gpuLayers}`;
  if (ask.cpuMoeLayers !== undefined && ask.cpuMoeLayers !== contract.cpuMoeLayers)
    return `it keeps ${contract.cpuMoeLayers} expert layers in RAM, pinned are ${ask.cpuMoeLayers}`;
  if (!sameExtras(ask, contract)) return 'its engine has other arguments or variables';
  const asked = typeof ask.context === 'number' ? ask.context : ask.context === 'auto' ? 0 : ask.context.min;
  const needed = Math.max(
    asked,
    contract.kind === 'chat' ? Math.min(callTokens, ceilingOf(ask, largestTokens)) : 0,
  );
  if (contract.contextTokens < needed)
    return `its context is ${contract.contextTokens} tokens, needed are ${needed}`;
  return undefined;
}

/** A call's estimate never asks for more than the ask allows or a reload can give. */
function ceilingOf(ask: Ask, largestTokens: number): number {
  if (typeof ask.context === 'number') return Math.min(ask.context, largestTokens);
  return ask.context === 'auto' ? largestTokens : Math.min(ask.context.max, largestTokens);
}
