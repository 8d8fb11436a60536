import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { EVICTION_REASONS, type EvictionReason } from '#domain/events/worker-events.js';
import { ListQuery } from '../paging/list-query.dto.js';

export class EvictionsQuery extends ListQuery {
  @IsOptional()
  @IsString()
  @MaxLength(200)
  worker?: string;

  @IsOptional()
  @IsString()
  @MaxLength(500)
  model?: string;

  @IsOptional()
  @IsString()
  @MaxLength(200)
  resident?: string;

  @IsOptional()
  @IsIn(EVICTION_REASONS)
  reason?: EvictionReason;
}
