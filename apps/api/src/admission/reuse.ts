import type { Resident } from '#domain/worker/state.js';
import { approvedArtifacts, whyNotReusable } from '#placement/ask.js';
import type { Wanted } from './port.js';
import type { Terms } from './terms.js';

/** Slots that the engine really has; the contract's until it has said so. */
export const slotsOf = (resident: Resident): number => resident.measured?.slots ?? resident.contract.slots;

/**
 * Whether a resident satisfies a call's ask, whatever its phase. Stricter than a decision is where the largest context
 * that a reload could give matters: what is not reusable here is decided, and the decision may still say reuse.
 */
export function satisfies(resident: Resident, wanted: Wanted, { settings, ask }: Terms): boolean {
  const approved = approvedArtifacts(wanted.model.artifacts, settings, ask);
  const artifact = wanted.model.artifacts.find((a) => a.label === resident.artifact);
  return (
    whyNotReusable(resident, {
      ask,
      approved,
      callTokens: wanted.promptTokens + (wanted.maxTokens ?? 0),
      largestTokens: artifact?.geometry?.trainedContextTokens ?? resident.contract.contextTokens,
    }) === undefined
  );
}
