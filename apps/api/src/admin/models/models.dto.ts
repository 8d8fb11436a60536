import { IsBoolean } from 'class-validator';
import { Flag, ListQuery, OptionalText } from '../paging/list-query.dto.js';

export class ModelsQuery extends ListQuery {
  @OptionalText(200)
  worker?: string;

  /** Also those that are no longer on the disk. */
  @Flag()
  @IsBoolean()
  gone: boolean = false;
}
