import { Controller, Get, Inject } from '@nestjs/common';
import type { CoresItem, WirePage } from '#domain/wire/index.js';
import { Fleet } from '../../fleet/fleet.js';
import { limitOf } from '../../live/fold/resident-items.js';

/** Physical cores of each worker, and who computes on them. */
@Controller('admin/cores')
export class CoresController {
  readonly #fleet: Fleet;

  constructor(@Inject(Fleet) fleet: Fleet) {
    this.#fleet = fleet;
  }

  @Get()
  cores(): WirePage<CoresItem> {
    const items = [...this.#fleet.workers.values()].map((worker): CoresItem => {
      const limitCores = limitOf(worker, 'cores');
      return {
        workerId: worker.workerId,
        workerName: worker.name,
        physicalCores: worker.physicalCores,
        ...(limitCores === undefined ? {} : { limitCores }),
        residents: [...worker.residents.values()].map(({ residentId, modelKey, phase, contract }) => ({
          residentId,
          modelKey,
          phase,
          threads: contract.threads,
          ...(contract.cores ? { cores: contract.cores } : {}),
        })),
      };
    });
    return { items };
  }
}
