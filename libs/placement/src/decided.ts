import type { Considered, PlacementDecidedData, Victim } from '#domain/events/worker-events.js';
import type { Resident } from '#domain/worker/state.js';
import type { PlacementOutcome } from './contract.js';
import type { Admitted } from './rank.js';
import type { Snapshot } from './snapshot.js';
import { workingOf } from './working.js';

/** The plan that was chosen, as the event that is to be appended; or what the engine is asked first. */
export function decided(
  snapshot: Snapshot,
  best: Admitted,
  considered: (chosen: Admitted) => readonly Considered[],
): PlacementOutcome {
  const { input } = snapshot;
  const { plan, forecast } = best;
  const { contract } = plan;
  if (plan.projectable)
    return { kind: 'project', wanted: [{ artifact: plan.shape.artifact.label, contract }] };
  const data: PlacementDecidedData = {
    ...workingOf(snapshot, considered(best)),
    decisionId: input.decisionId,
    residentId: input.residentId,
    artifact: plan.shape.artifact.label,
    rung: plan.shape.rung,
    contract,
    devices: contract.devices,
    need: plan.need.terms,
    victims: [...snapshot.own.map((r) => replacedVictim(snapshot, r)), ...best.victims.map(victimOf)],
    exact: best.exact,
    ...(input.callPriority === undefined ? {} : { priority: input.callPriority }),
    validUntil: new Date(input.nowMs + input.settings.maxWaitSeconds * 1000).toISOString(),
    predicted: {
      readyInSeconds: forecast.readyInSeconds,
      loadSeconds: forecast.loadSeconds,
      ...(forecast.outputSeconds === undefined ? {} : { outputSeconds: forecast.outputSeconds }),
    },
  };
  return { kind: 'decided', data };
}

/** The model's own resident under another ask: its bytes are credit, and nothing is lost with it. */
const replacedVictim = (snapshot: Snapshot, resident: Resident): Victim => ({
  residentId: resident.residentId,
  modelKey: resident.modelKey,
  lossSeconds: 0,
  frees: listOf(snapshot.charges.get(resident.residentId)?.bytes),
});

const victimOf = (victim: Admitted['victims'][number]): Victim => ({
  residentId: victim.residentId,
  modelKey: victim.modelKey,
  lossSeconds: Math.round(victim.lossSeconds * 1000) / 1000,
  frees: listOf(victim.frees),
});

const listOf = (bytes: Admitted['victims'][number]['frees'] | undefined): Victim['frees'] =>
  [...(bytes ?? [])].filter(([, n]) => n > 0).map(([deviceId, n]) => ({ deviceId, bytes: n }));
