import { ListQuery, OptionalText } from '../paging/list-query.dto.js';

export class AccuracyQuery extends ListQuery {
  @OptionalText(200)
  worker?: string;

  @OptionalText(500)
  model?: string;
}
