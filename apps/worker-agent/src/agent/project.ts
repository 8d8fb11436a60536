import type { ModelKey, WorkerId } from '#domain/ids.js';
import { classKey, placementClassOf, type Contract } from '#domain/placement-terms.js';
import { derivedId } from '#runtime/ids.js';
import type { FromAgent, FromApi } from '../line/messages.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter } from './facts.js';

export interface ProjectOptions {
  readonly workerId: WorkerId;
  readonly engines: RunningEngines;
  readonly facts: FactWriter;
  readonly filesOf: (modelKey: ModelKey, artifact: string) => readonly string[] | undefined;
}

/** Has an engine say what a plan takes, and writes the figures into the pair's history. */
export async function project(
  request: NonNullable<FromApi['project']>,
  o: ProjectOptions,
): Promise<NonNullable<FromAgent['projected']>> {
  const { requestId, artifact } = request;
  const modelKey = request.modelKey as ModelKey;
  const contract = JSON.parse(request.contractJson) as Contract;
  const no = (error: string) => ({ requestId, ok: false, error, revision: -1 });
  const files = o.filesOf(modelKey, artifact);
  if (!files) return no(`The files of ${modelKey} ${artifact} are not on this machine.`);
  const driver = o.engines.driver(contract.engine.kind);
  if (!driver) return no(`There is no ${contract.engine.kind} engine on this machine.`);
  const answer = await driver.project({ modelKey, artifact, files, contract });
  if (!answer) return no(`${contract.engine.kind} could not say what ${modelKey} ${artifact} takes.`);
  const placementClass = placementClassOf(artifact, contract);
  const appended = await o.facts.history(
    derivedId(
      'LoadProjected',
      o.workerId,
      modelKey,
      classKey(placementClass),
      JSON.stringify(answer.byDevice),
    ),
    modelKey,
    {
      type: 'LoadProjected',
      data: { class: placementClass, byDevice: answer.byDevice, source: answer.source },
    },
    { correlationId: requestId, causationId: requestId },
  );
  return { requestId, ok: true, error: '', revision: appended.revision };
}
