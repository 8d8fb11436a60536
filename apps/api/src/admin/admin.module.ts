import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import type { EventLog } from '#events/event-log.js';
import type { ViewsDb } from '#schema/connect.js';
import { Fleet } from '../fleet/fleet.js';
import type { LiveHub } from '../live/socket/live-hub.js';
import { Replays } from '../replay/replays.js';
import { WhatIfs } from '../what-if/what-ifs.js';
import { ACCESS_POLICY, type AccessPolicy } from './access/access-policy.js';
import { AdminGuard } from './access/admin.guard.js';
import { AccuracyController } from './accuracy/accuracy.controller.js';
import { AccuracyRepository } from './accuracy/accuracy.repository.js';
import { CallsController } from './calls/calls.controller.js';
import { CallsRepository } from './calls/calls.repository.js';
import { CommandLog, EVENT_LOG } from './commands/command-log.js';
import { WAIT_MOST_MS, WaitInterceptor } from './commands/wait.interceptor.js';
import { DecisionsController } from './decisions/decisions.controller.js';
import { DecisionsRepository } from './decisions/decisions.repository.js';
import { EvictionsController } from './evictions/evictions.controller.js';
import { EvictionsRepository } from './evictions/evictions.repository.js';
import { CoresController } from './cores/cores.controller.js';
import { LimitsController } from './limits/limits.controller.js';
import { PullsController } from './pulls/pulls.controller.js';
import { PullsRepository } from './pulls/pulls.repository.js';
import { PullsService } from './pulls/pulls.service.js';
import { LogController } from './state/log.controller.js';
import { StorageController, StorageRepository } from './storage/storage.controller.js';
import { LIVE_HUB, TelemetryController } from './telemetry/telemetry.controller.js';
import { TelemetryService } from './telemetry/telemetry.service.js';
import { DailyRepository } from './usage/daily.repository.js';
import { UsageController } from './usage/usage.controller.js';
import { UsageRepository } from './usage/usage.repository.js';
import { INPUT_FOR, type InputFor, VerdictsService } from './verdicts/verdicts.service.js';
import { ExplainService } from './explain/explain.service.js';
import { HistoryController } from './history/history.controller.js';
import { HistoryRepository } from './history/history.repository.js';
import { KeysController } from './keys/keys.controller.js';
import { KeysRepository } from './keys/keys.repository.js';
import { KeysService } from './keys/keys.service.js';
import { ModelsController } from './models/models.controller.js';
import { ModelsRepository } from './models/models.repository.js';
import { EvictController, OperatorController } from './operator/operator.controller.js';
import { OpenapiController } from './openapi/openapi.controller.js';
import { OPERATOR_PORTS, type OperatorPorts } from './operator/operator-ports.js';
import { OperatorRepository } from './operator/operator.repository.js';
import { OperatorService } from './operator/operator.service.js';
import { PROBLEM_LOG, ProblemFilter, type ProblemLog } from './problem/problem.filter.js';
import { ReplayController } from './replay/replay.controller.js';
import { ReplayRepository } from './replay/replay.repository.js';
import { ResidentsController } from './residents/residents.controller.js';
import { ResidentsRepository } from './residents/residents.repository.js';
import { SettingsController } from './settings/settings.controller.js';
import { SettingsService } from './settings/settings.service.js';
import { ViewsReader } from './views/views-reader.js';
import { WhatIfController } from './what-if/what-if.controller.js';
import { WhatIfNightsController, WhatIfNightsRepository } from './what-if/what-if-nights.controller.js';
import { WorkersController } from './workers/workers.controller.js';
import { WorkersRepository } from './workers/workers.repository.js';

export interface AdminParts {
  /** Undefined when no Postgres was named: every list answers 503. Ended by who opened it. */
  readonly views: ViewsDb | undefined;
  readonly access: AccessPolicy;
  readonly log: ProblemLog;
  /** What is folded, and where commands are written. */
  readonly fleet: Fleet;
  readonly events: Pick<EventLog, 'append' | 'fold' | 'readForwards' | 'subscribeAll'>;
  readonly hub: LiveHub;
  readonly inputFor: InputFor;
  readonly operator: OperatorPorts;
  readonly whatIfs: WhatIfs;
  readonly replays: Replays;
  /** How long a read with `?wait=` waits for the views at most. */
  readonly waitMostMs?: number;
}

/** Shorter than what clients and proxies give an answer. */
const WAIT_MS = 10_000;

/** Every statement over the views is in one of these. */
export const REPOSITORIES = [
  AccuracyRepository,
  CallsRepository,
  DailyRepository,
  DecisionsRepository,
  EvictionsRepository,
  HistoryRepository,
  KeysRepository,
  ModelsRepository,
  OperatorRepository,
  PullsRepository,
  ReplayRepository,
  ResidentsRepository,
  StorageRepository,
  UsageRepository,
  WhatIfNightsRepository,
  WorkersRepository,
] as const;

/** All routes of management but the queue's, which is the api's own. */
export const ADMIN_CONTROLLERS = [
  AccuracyController,
  CallsController,
  CoresController,
  DecisionsController,
  EvictionsController,
  HistoryController,
  KeysController,
  LimitsController,
  LogController,
  ModelsController,
  OperatorController,
  EvictController,
  PullsController,
  ReplayController,
  ResidentsController,
  SettingsController,
  StorageController,
  TelemetryController,
  UsageController,
  WhatIfController,
  WhatIfNightsController,
  WorkersController,
  OpenapiController,
] as const;

/** What management reads from the views. Errors of the whole application become problem documents here. */
@Module({})
export class AdminModule {
  static with(parts: AdminParts): DynamicModule {
    const providers: Provider[] = [
      { provide: ViewsReader, useValue: new ViewsReader(parts.views) },
      { provide: ACCESS_POLICY, useValue: parts.access },
      { provide: PROBLEM_LOG, useValue: parts.log },
      { provide: APP_FILTER, useClass: ProblemFilter },
      { provide: APP_GUARD, useClass: AdminGuard },
      { provide: APP_INTERCEPTOR, useClass: WaitInterceptor },
      { provide: WAIT_MOST_MS, useValue: parts.waitMostMs ?? WAIT_MS },
      { provide: EVENT_LOG, useValue: parts.events },
      { provide: Fleet, useValue: parts.fleet },
      { provide: OPERATOR_PORTS, useValue: parts.operator },
      { provide: LIVE_HUB, useValue: parts.hub },
      { provide: INPUT_FOR, useValue: parts.inputFor },
      { provide: WhatIfs, useValue: parts.whatIfs },
      { provide: Replays, useValue: parts.replays },
      CommandLog,
      PullsService,
      TelemetryService,
      VerdictsService,
      OperatorService,
      KeysService,
      SettingsService,
      ExplainService,
      ...REPOSITORIES,
    ];
    return {
      module: AdminModule,
      controllers: [...ADMIN_CONTROLLERS],
      providers,
    };
  }
}
