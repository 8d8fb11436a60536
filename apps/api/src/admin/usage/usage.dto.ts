import { Transform } from 'class-transformer';
import { ArrayMaxSize, ArrayNotEmpty, IsIn } from 'class-validator';
import { OptionalText, TimedListQuery } from '../paging/list-query.dto.js';

export const USAGE_GROUPS = ['model', 'key', 'hour', 'day'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export class UsageQuery extends TimedListQuery {
  /** Of `model`, `key`, and one of `hour` and `day`, with commas. */
  @Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? value.split(',') : value))
  @ArrayNotEmpty()
  @ArrayMaxSize(3)
  @IsIn(USAGE_GROUPS, { each: true })
  by: readonly UsageGroup[] = ['day'];

  @OptionalText(500)
  model?: string;

  @OptionalText(200)
  key?: string;
}
