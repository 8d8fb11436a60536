import { IsIn, IsOptional } from 'class-validator';
import { EVICTION_REASONS, type EvictionReason } from '#domain/events/worker-events.js';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';

export class EvictionsQuery extends ListQuery {
  @OptionalText(200)
  worker?: string;

  @OptionalText(500)
  model?: string;

  @OptionalText(200)
  resident?: string;

  @IsOptional()
  @IsIn(EVICTION_REASONS)
  reason?: EvictionReason;
}
