import { IsOptional, IsString, MaxLength } from 'class-validator';
import { ListQuery } from '../paging/list-query.dto.js';

export class AccuracyQuery extends ListQuery {
  @IsOptional()
  @IsString()
  @MaxLength(200)
  worker?: string;

  @IsOptional()
  @IsString()
  @MaxLength(500)
  model?: string;
}
