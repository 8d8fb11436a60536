import { IsIn, IsOptional } from 'class-validator';
import { ListQuery } from '../paging/list-query.dto.js';

const KINDS = ['projected', 'measured', 'refused', 'probed'] as const;

export class HistoryQuery extends ListQuery {
  /** `loads`: what loading took, predicted beside measured. `serving`: what calls took. */
  @IsIn(['loads', 'serving'])
  of: 'loads' | 'serving' = 'loads';

  @IsOptional()
  @IsIn(KINDS)
  kind?: (typeof KINDS)[number];
}
