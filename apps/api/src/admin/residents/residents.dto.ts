import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { ListQuery } from '../paging/list-query.dto.js';

export const RESIDENT_STATES = ['live', 'ended', 'all'] as const;

export class ResidentsQuery extends ListQuery {
  @IsIn(RESIDENT_STATES)
  state: (typeof RESIDENT_STATES)[number] = 'live';

  @IsOptional()
  @IsString()
  @MaxLength(200)
  worker?: string;

  @IsOptional()
  @IsString()
  @MaxLength(500)
  model?: string;
}
