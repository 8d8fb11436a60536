import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { CALL_OUTCOMES } from '#domain/events/call-events.js';
import { TimedListQuery } from '../paging/list-query.dto.js';

const STATES = [...CALL_OUTCOMES, 'running'] as const;

export class CallsQuery extends TimedListQuery {
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
  resident?: string;

  @IsOptional()
  @IsString()
  @MaxLength(200)
  key?: string;

  @IsOptional()
  @IsIn(STATES)
  outcome?: (typeof STATES)[number];
}
