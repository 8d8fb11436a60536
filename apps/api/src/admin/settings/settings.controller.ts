import { Body, Controller, Get, Headers, Inject, Param, Patch, UsePipes } from '@nestjs/common';
import { By } from '../access/admin.guard.js';
import { queryPipe } from '../problem/query-pipe.js';
import { ChangeSettings } from './settings.dto.js';
import { SettingsService } from './settings.service.js';
import { fail } from '../problem/fail.js';

@Controller('admin/settings')
@UsePipes(queryPipe())
export class SettingsController {
  readonly #settings: SettingsService;

  constructor(@Inject(SettingsService) settings: SettingsService) {
    this.#settings = settings;
  }

  @Get()
  readFleet() {
    return this.#settings.read('fleet');
  }

  /** A model's key holds slashes, encoded or as they are. */
  @Get('*')
  read(@Param('*') scope: string) {
    return this.#settings.read(scope);
  }

  @Patch()
  changeFleet(@Body() change: ChangeSettings, @By() by: string, @Headers('if-match') match?: string) {
    return this.#settings.change('fleet', change.values, by, revisionOf(change, match));
  }

  @Patch('*')
  change(
    @Param('*') scope: string,
    @Body() change: ChangeSettings,
    @By() by: string,
    @Headers('if-match') match?: string,
  ) {
    return this.#settings.change(scope, change.values, by, revisionOf(change, match));
  }
}

/** `If-Match: "7"`, or the body's field. */
function revisionOf(change: ChangeSettings, match: string | undefined): number | undefined {
  if (match === undefined || match === '*') return change.revision;
  const revision = /^"?(-?\d{1,15})"?$/.exec(match.trim())?.[1];
  if (revision !== undefined) return Number(revision);
  const message = 'If-Match must be the revision of the settings, such as "7".';
  fail('invalid_request', message, 'if-match');
}
