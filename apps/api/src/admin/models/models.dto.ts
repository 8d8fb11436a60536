import { IsBoolean, IsOptional, IsString, MaxLength } from 'class-validator';
import { Flag, ListQuery } from '../paging/list-query.dto.js';

export class ModelsQuery extends ListQuery {
  @IsOptional()
  @IsString()
  @MaxLength(200)
  worker?: string;

  /** Also those that are no longer on the disk. */
  @Flag()
  @IsBoolean()
  gone: boolean = false;
}
