import { Body, Controller, Inject, Param, Patch, UsePipes } from '@nestjs/common';
import { IsInt, IsString, Length, Min, ValidateIf } from 'class-validator';
import { DISK, RAM, workerId } from '#domain/ids.js';
import { formatBytes } from '#domain/units.js';
import type { WireWritten } from '#domain/wire/index.js';
import type { WorkerState } from '#domain/worker/state.js';
import { streams } from '#events/streams.js';
import { capacityOf, limitAboveParent, nameOf } from '#placement/room.js';
import { Fleet } from '../../fleet/fleet.js';
import { By } from '../access/admin.guard.js';
import { CommandLog, expecting } from '../commands/command-log.js';
import { queryPipe } from '../problem/query-pipe.js';
import { fail } from '../problem/fail.js';

export class SetLimit {
  /** A device's id (`ram` among them), `cores`, or `disk`: what models take in Berth's own folder. */
  @IsString()
  @Length(1, 200)
  resource!: string;

  /** Bytes, or a number of cores; null takes the limit away. */
  @ValidateIf((asked: SetLimit) => asked.value !== null)
  @IsInt()
  @Min(0)
  value!: number | null;
}

const TRIES = 5;

/** Limits stand in the worker's stream, so that decisions are guarded by them: none is written over a newer one. */
@Controller('admin/workers')
@UsePipes(queryPipe())
export class LimitsController {
  readonly #fleet: Fleet;
  readonly #log: CommandLog;

  constructor(@Inject(Fleet) fleet: Fleet, @Inject(CommandLog) log: CommandLog) {
    this.#fleet = fleet;
    this.#log = log;
  }

  @Patch(':id/limits')
  async set(@Param('id') id: string, @Body() asked: SetLimit, @By() by: string): Promise<WireWritten> {
    const worker = workerId(id);
    for (let tries = 1; tries <= TRIES; tries += 1) {
      await this.#fleet.catchUpWorker(worker);
      const state = this.#fleet.worker(worker);
      if (!state) {
        const message = `There is no worker ${id.slice(0, 200)}. GET /admin/workers lists them.`;
        fail('not_found', message, 'id');
      }
      const { resource, value } = asked;
      check(state, resource, value);
      if ((state.limits.setting.get(resource) ?? null) === value) return { revision: state.revision };
      const written = await this.#log.append(
        streams.worker(worker),
        { type: 'LimitSet', data: { resource, tier: 'setting', value, by } },
        expecting(state.revision),
      );
      if (!written) continue;
      await this.#fleet.catchUpWorker(worker);
      return written;
    }
    fail('conflict', 'Decisions are written for this worker just now. Try again.');
  }
}

function check(state: WorkerState, resource: string, value: number | null): void {
  const drive = capacityOf(state, DISK) === undefined ? [] : [DISK];
  const devices = [...new Set([RAM, ...state.devices.map((d) => d.deviceId), ...drive])];
  const asked = resource === 'cores' ? resource : devices.find((id) => id === resource);
  if (asked === undefined || (asked !== 'cores' && capacityOf(state, asked) === undefined)) {
    const message = `The worker has no "${resource.slice(0, 200)}". It has ${[...devices, 'cores'].join(', ')}.`;
    fail('invalid_request', message, 'resource');
  }
  const above = value === null ? undefined : limitAboveParent(state, asked, value);
  if (value === null || !above) return;
  const said = (n: number): string => (asked === 'cores' ? `${n} cores` : formatBytes(n));
  const what = asked === 'cores' ? 'the machine' : nameOf(asked);
  const parent =
    above.tier === 'device'
      ? `the ${said(above.value)} that ${what} has`
      : `the limit of ${said(above.value)} that the worker was started with for ${what}`;
  const message = `${said(value)} is more than ${parent}. Set at most that.`;
  const details = { tier: above.tier, parent: above.value, asked: value };
  fail('limit_above_parent', message, { param: 'value', details });
}
