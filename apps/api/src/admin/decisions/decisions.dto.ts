import { IsIn, IsOptional } from 'class-validator';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';

const STATES = ['open', 'ready', 'failed', 'closed', 'refused'] as const;

export class DecisionsQuery extends ListQuery {
  @OptionalText(500)
  model?: string;

  @OptionalText(200)
  worker?: string;

  @OptionalText(200)
  call?: string;

  @IsOptional()
  @IsIn(STATES)
  state?: (typeof STATES)[number];
}
