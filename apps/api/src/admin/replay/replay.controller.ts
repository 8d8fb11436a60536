import { Body, Controller, Get, HttpCode, Inject, Param, Post, UsePipes } from '@nestjs/common';
import { IsIn } from 'class-validator';
import type { ReplayItem, ReplayMode, ReplayRequest } from '#domain/wire/index.js';
import { MOST_KEPT } from '../../replay/last-asked.js';
import { Replays } from '../../replay/replays.js';
import { queryPipe } from '../problem/query-pipe.js';
import { ReplayRepository } from './replay.repository.js';
import { fail } from '../problem/fail.js';

const MODES = ['verify', 'rebuild'] as const satisfies readonly ReplayMode[];

export class AskReplay implements ReplayRequest {
  @IsIn(MODES)
  mode: ReplayMode = 'verify';
}

/** The views against the log that they are folded from. */
@Controller('admin/replay')
@UsePipes(queryPipe())
export class ReplayController {
  readonly #replays: Replays;
  readonly #turns: ReplayRepository;

  constructor(@Inject(Replays) replays: Replays, @Inject(ReplayRepository) turns: ReplayRepository) {
    this.#replays = replays;
    this.#turns = turns;
  }

  /** Newest first, without their differences. */
  @Get()
  list(): { readonly items: readonly ReplayItem[] } {
    return { items: this.#replays.list };
  }

  @Get(':id')
  one(@Param('id') id: string): ReplayItem {
    const item = this.#replays.of(id);
    if (item) return item;
    const message = `There is no replay ${id.slice(0, 100)}. This api keeps the last ${MOST_KEPT}; ask anew with POST /admin/replay.`;
    fail('not_found', message);
  }

  /** It runs beside everything else; how far it is stands at `GET /admin/replay/ID`. */
  @Post()
  @HttpCode(202)
  async ask(@Body() request: AskReplay): Promise<ReplayItem> {
    // Of its own one this api can say more than that somebody holds the turn.
    if (!this.#replays.isRunning && !(await this.#turns.isFree())) {
      const message =
        'Another replay of these views runs, of another api or a `berth replay`. Ask again when it has ended.';
      fail('conflict', message);
    }
    return this.#replays.start(request.mode);
  }
}
