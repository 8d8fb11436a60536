import { Controller, Get, Inject, Query, UsePipes } from '@nestjs/common';
import { IsInt, IsISO8601, IsOptional, Max, Min } from 'class-validator';
import { Type } from 'class-transformer';
import type { DailyItem, UsageItem } from '#domain/wire/index.js';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { present } from '../views/present.js';
import { DailyRepository } from './daily.repository.js';
import { UsageQuery } from './usage.dto.js';
import { DAY_MS, type UsageRow, UsageRepository, usageKey } from './usage.repository.js';
import { fail } from '../problem/fail.js';

export class DailyQuery {
  /** Days in a page. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(366)
  limit: number = 30;

  /** The `next` of the page before: the day before which it goes on. */
  @IsOptional()
  @IsISO8601()
  after?: string;
}

const usageView = (row: UsageRow, names: ReadonlyMap<string, string>): UsageItem => ({
  ...present({
    time: row.time,
    modelKey: row.model_key,
    keyId: row.key_id,
    keyName: row.key_id === undefined ? undefined : names.get(row.key_id),
  }),
  calls: row.calls,
  completed: row.completed,
  failed: row.failed,
  abandoned: row.abandoned,
  refused: row.refused,
  promptTokens: row.prompt_tokens,
  cachedTokens: row.cached_tokens,
  outputTokens: row.output_tokens,
  reasoningTokens: row.reasoning_tokens,
  promptMs: row.prompt_ms,
  decodeMs: row.decode_ms,
  waitedMs: row.waited_ms,
  bytesOut: row.bytes_out,
});

@Controller('admin')
@UsePipes(queryPipe())
export class UsageController {
  readonly #usage: UsageRepository;
  readonly #daily: DailyRepository;

  constructor(
    @Inject(UsageRepository) usage: UsageRepository,
    @Inject(DailyRepository) daily: DailyRepository,
  ) {
    this.#usage = usage;
    this.#daily = daily;
  }

  @Get('usage')
  async usage(@Query() query: UsageQuery): Promise<Page<UsageItem>> {
    if (query.by.includes('hour') && query.by.includes('day')) {
      fail('invalid_request', 'Usage is by hour or by day, not by both.', 'by');
    }
    const rows = await this.#usage.page(query);
    const ids = [...new Set(rows.flatMap((row) => (row.key_id ? [row.key_id] : [])))];
    const names = await this.#usage.keyNames(ids);
    return pageOf(rows, query.limit, usageKey, (row) => usageView(row, names));
  }

  @Get('daily')
  async daily(@Query() query: DailyQuery): Promise<Page<DailyItem>> {
    const to = query.after === undefined ? midnightAfter(Date.now()) : Date.parse(query.after);
    const from = new Date(to - query.limit * DAY_MS).toISOString();
    const items = await this.#daily.rows(from, new Date(to).toISOString());
    const first = await this.#daily.first();
    return { items, ...(first !== undefined && first < from ? { next: from } : {}) };
  }
}

const midnightAfter = (ms: number): number => (Math.floor(ms / DAY_MS) + 1) * DAY_MS;
