import { IsIn } from 'class-validator';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';

export const RESIDENT_STATES = ['live', 'ended', 'all'] as const;

export class ResidentsQuery extends ListQuery {
  @IsIn(RESIDENT_STATES)
  state: (typeof RESIDENT_STATES)[number] = 'live';

  @OptionalText(200)
  worker?: string;

  @OptionalText(500)
  model?: string;
}
