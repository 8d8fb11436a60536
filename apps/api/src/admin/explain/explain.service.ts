import { Inject, Injectable } from '@nestjs/common';
import type { Comparison, Situation } from '#domain/wire/index.js';
import { callView, type CallView } from '../calls/call.view.js';
import type { CallRow } from '../calls/calls.repository.js';
import {
  decisionDetail,
  type DecisionDetail,
  decisionView,
  type DecisionView,
} from '../decisions/decision.view.js';
import { type DecisionRow, DecisionsRepository } from '../decisions/decisions.repository.js';
import { HistoryRepository } from '../history/history.repository.js';
import { loadView, type LoadView } from '../history/history.view.js';
import { residentView, type ResidentView } from '../residents/resident.view.js';
import { type ResidentRow, ResidentsRepository } from '../residents/residents.repository.js';
import { compare } from './compare.js';
import { explainText } from './explain-text.js';
import { situationOf } from './explained.js';

export interface ExplainedCall {
  readonly call: CallView;
  readonly situation: Situation;
  /** The decision that refused it or made the resident that served it, with its whole working. */
  readonly decision?: DecisionDetail;
  /** Every decision that was taken for this call, oldest first. */
  readonly decisions: readonly DecisionView[];
  readonly resident?: ResidentView;
  /** The measurement of the load that made the resident. */
  readonly load?: LoadView;
  readonly compared: readonly Comparison[];
  /** The same as a person reads it, at most 100 columns. */
  readonly text: string;
}

/** Why a call was served as it was: gathers what the views hold of it and renders it. */
@Injectable()
export class ExplainService {
  readonly #decisions: DecisionsRepository;
  readonly #residents: ResidentsRepository;
  readonly #history: HistoryRepository;

  constructor(
    @Inject(DecisionsRepository) decisions: DecisionsRepository,
    @Inject(ResidentsRepository) residents: ResidentsRepository,
    @Inject(HistoryRepository) history: HistoryRepository,
  ) {
    this.#decisions = decisions;
    this.#residents = residents;
    this.#history = history;
  }

  async explain(call: CallRow): Promise<ExplainedCall> {
    const own = await this.#decisions.ofCall(call.call_id);
    const served = call.resident_id === null ? undefined : await this.#residents.find(call.resident_id);
    const decision = await this.#decisionBehind(call, own, served);
    const residentId = served?.resident_id ?? decision?.resident_id;
    const resident = served ?? (residentId ? await this.#residents.find(residentId) : undefined);
    const load = residentId ? await this.#history.loadOf(residentId) : undefined;
    const working = decision ? await this.#decisions.working(decision.decision_id) : undefined;
    const detail = decision && working ? decisionDetail(decision, working) : undefined;
    const situation = situationOf(call, decision, resident);
    const compared = compare(call, decision, resident, load, situation);
    return {
      call: callView(call),
      situation,
      ...(detail ? { decision: detail } : {}),
      decisions: own.map(decisionView),
      ...(resident ? { resident: residentView(resident) } : {}),
      ...(load ? { load: loadView(load) } : {}),
      compared,
      text: explainText({ call, situation, decision, resident, compared, working: detail?.text }),
    };
  }

  async #decisionBehind(
    call: CallRow,
    own: readonly DecisionRow[],
    resident: ResidentRow | undefined,
  ): Promise<DecisionRow | undefined> {
    const id = call.decision_id ?? resident?.decision_id;
    const named = id ? await this.#decisions.find(id) : undefined;
    return named ?? own.at(-1);
  }
}
