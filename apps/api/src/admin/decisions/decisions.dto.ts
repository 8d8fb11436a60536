import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { ListQuery } from '../paging/list-query.dto.js';

const STATES = ['open', 'ready', 'failed', 'closed', 'refused'] as const;

export class DecisionsQuery extends ListQuery {
  @IsOptional()
  @IsString()
  @MaxLength(500)
  model?: string;

  @IsOptional()
  @IsString()
  @MaxLength(200)
  worker?: string;

  @IsOptional()
  @IsString()
  @MaxLength(200)
  call?: string;

  @IsOptional()
  @IsIn(STATES)
  state?: (typeof STATES)[number];
}
