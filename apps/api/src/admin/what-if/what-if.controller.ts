import { Body, Controller, Get, HttpCode, Inject, Param, Post, UsePipes } from '@nestjs/common';
import type { WhatIfItem } from '#domain/wire/index.js';
import { isKnob, KNOBS } from '#placement/knobs.js';
import { MOST_KEPT } from '../../replay/last-asked.js';
import { WhatIfs } from '../../what-if/what-ifs.js';
import { queryPipe } from '../problem/query-pipe.js';
import { AskWhatIf } from './what-if.dto.js';
import { fail } from '../problem/fail.js';

@Controller('admin/what-if')
@UsePipes(queryPipe())
export class WhatIfController {
  readonly #whatIfs: WhatIfs;

  constructor(@Inject(WhatIfs) whatIfs: WhatIfs) {
    this.#whatIfs = whatIfs;
  }

  /** Newest first, without their reports. */
  @Get()
  list(): { readonly items: readonly WhatIfItem[] } {
    return { items: this.#whatIfs.list.map(({ report: _report, ...item }) => item) };
  }

  @Get(':id')
  one(@Param('id') id: string): WhatIfItem {
    const item = this.#whatIfs.of(id);
    if (item) return item;
    const message = `There is no what-if ${id.slice(0, 100)}. This api keeps the last ${MOST_KEPT}; ask anew with POST /admin/what-if.`;
    fail('not_found', message);
  }

  /** It runs beside everything else; its answer is at `GET /admin/what-if/ID`. */
  @Post()
  @HttpCode(202)
  ask(@Body() request: AskWhatIf): WhatIfItem {
    for (const [name, value] of Object.entries(request.settings ?? {})) {
      const why = whyNo(name, value);
      if (why !== undefined) fail('invalid_request', why, `settings.${name}`);
    }
    return this.#whatIfs.start(request);
  }
}

/** Every knob may be tried, at whatever level it stands. */
function whyNo(name: string, value: unknown): string | undefined {
  if (!isKnob(name)) return `There is no placement setting "${name}".`;
  return KNOBS[name].check(value) ? undefined : `"${name}" must be ${KNOBS[name].must}.`;
}
