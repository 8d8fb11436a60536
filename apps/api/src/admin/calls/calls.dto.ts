import { IsIn, IsOptional } from 'class-validator';
import { CALL_OUTCOMES } from '#domain/events/call-events.js';
import { OptionalText, TimedListQuery } from '../paging/list-query.dto.js';

const STATES = [...CALL_OUTCOMES, 'running'] as const;

export class CallsQuery extends TimedListQuery {
  @OptionalText(500)
  model?: string;

  @OptionalText(200)
  worker?: string;

  @OptionalText(200)
  resident?: string;

  @OptionalText(200)
  key?: string;

  @IsOptional()
  @IsIn(STATES)
  outcome?: (typeof STATES)[number];
}
