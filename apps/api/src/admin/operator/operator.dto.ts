import { IsIn, IsOptional } from 'class-validator';
import type { OperatorActionName } from '#domain/wire/index.js';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';

export const OPERATOR_ACTIONS = [
  'evict',
  'evict-all',
  'load',
  'refresh-models',
  'remove-model',
  'restart-agent',
] as const satisfies readonly OperatorActionName[];

const STATES = ['requested', 'running', 'done', 'failed'] as const;

export class RequestAction {
  @IsIn(OPERATOR_ACTIONS)
  action!: OperatorActionName;

  /** May be left out where the target names it, or where there is one worker. */
  @OptionalText(200)
  worker?: string;

  /** `evict`: a resident's id. `load` and `remove-model`: a model. */
  @OptionalText(500)
  target?: string;

  /** `load`: as behind a model's name, such as `ctx=8192,quant=Q4_K_M`. */
  @OptionalText(500)
  options?: string;
}

export class ActionsQuery extends ListQuery {
  @OptionalText(200)
  worker?: string;

  @IsOptional()
  @IsIn(OPERATOR_ACTIONS)
  action?: OperatorActionName;

  @IsOptional()
  @IsIn(STATES)
  state?: (typeof STATES)[number];
}
