import { applyDecorators } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import { IsInt, IsISO8601, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';

export const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;

/** A word that a list may be narrowed by. */
export const OptionalText = (maxLength: number): PropertyDecorator =>
  applyDecorators(IsOptional(), IsString(), MaxLength(maxLength));

/** Query parameters of every list. */
export class ListQuery {
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(MAX_LIMIT)
  limit: number = DEFAULT_LIMIT;

  /** The `next` of the page before. */
  @OptionalText(2000)
  after?: string;
}

/** Lists of things in time. */
export class TimedListQuery extends ListQuery {
  @IsOptional()
  @IsISO8601()
  since?: string;

  @IsOptional()
  @IsISO8601()
  until?: string;
}

/** `?flag`, `?flag=true`, `?flag=1`; anything else that is there is false. */
export const Flag = (): PropertyDecorator =>
  Transform(({ value }: { value: unknown }) => value === '' || value === 'true' || value === '1');
