/** What a route of management is, for its description: a sentence, and the type of `libs/domain/src/wire` or in words that it answers. */
export interface RouteDescription {
  readonly summary: string;
  readonly answers: string;
}

const list = (summary: string, item: string): RouteDescription => ({ summary, answers: `WirePage<${item}>` });
const one = (summary: string, answers: string): RouteDescription => ({ summary, answers });

/**
 * Every route of management. The document is made from these and from the controllers; one without the other is an error.
 * `*` stands for what holds slashes: a model's key, a scope.
 */
export const ROUTES: Readonly<Record<string, RouteDescription>> = {
  'GET /admin/accuracy': list(
    'Predicted against measured sizes, by model, worker, class and engine build',
    'accuracy',
  ),
  'GET /admin/calls': list('Calls, newest first', 'CallItem'),
  'GET /admin/calls/{id}': one('One call', 'CallItem'),
  'GET /admin/calls/{id}/explain': one('Why a call was served as it was', 'explanation with text'),
  'GET /admin/cores': list('Physical cores of each worker, and who computes on them', 'CoresItem'),
  'GET /admin/daily': list('What happened on each day, in one row', 'DailyItem'),
  'GET /admin/decisions': list('Decisions and refusals, newest first', 'DecisionItem'),
  'GET /admin/decisions/{id}': one(
    'One decision, with its event as it stands in the log',
    'DecisionItem with working',
  ),
  'GET /admin/docs': one('This description as a page', 'HTML'),
  'GET /admin/events': list('A stream of the log as it stands', 'event'),
  'GET /admin/evictions': list('Evictions, newest first', 'EvictionItem'),
  'GET /admin/history/{worker}/*': list(
    'Loads or calls of a model on a worker, predicted beside measured',
    'history',
  ),
  'GET /admin/keys': list('API keys, without their secrets', 'key'),
  'POST /admin/keys': one('Make a key; the answer alone has it', 'key with its secret'),
  'DELETE /admin/keys/{id}': one('Revoke a key; a second time changes nothing', 'WireWritten'),
  'POST /admin/keys/{id}/revoke': one('Revoke a key; a second time changes nothing', 'WireWritten'),
  'GET /admin/models': list('Models on disks, their artifacts and residents', 'model'),
  'GET /admin/models/{key}/verdicts': list(
    'How a model could be placed on each worker that has it, now',
    'VerdictItem',
  ),
  'GET /admin/models/*': list('One model, one item per worker that has it', 'model'),
  'GET /admin/openapi.json': one('This description', 'OpenAPI 3'),
  'GET /admin/operator/actions': list(
    'What operators asked for and what came of it, newest first',
    'OperatorItem',
  ),
  'POST /admin/operator/actions': one('Have a worker do something', 'OperatorAccepted'),
  'GET /admin/operator/actions/{id}': one('One action', 'OperatorItem'),
  'GET /admin/pulls': list('Transfers, newest first', 'PullItem'),
  'POST /admin/pulls': one('Fetch a model onto a worker', 'PullItem with WireWritten'),
  'GET /admin/pulls/{id}': one('One transfer', 'PullItem'),
  'GET /admin/queue': list('Calls that wait now, in their order, and why', 'QueueItem'),
  'GET /admin/replay': list('The last replays of this api, newest first, without differences', 'ReplayItem'),
  'POST /admin/replay': one(
    'Fold the log again beside the views: verify them row by row, or rebuild them',
    'ReplayItem',
  ),
  'GET /admin/replay/{id}': one('One replay: progress, rate, differences', 'ReplayItem'),
  'GET /admin/residents': list('What is loaded, newest first', 'ResidentItem'),
  'GET /admin/residents/{id}': one('One resident', 'ResidentItem'),
  'POST /admin/residents/{id}/evict': one('Unload a resident once its calls have ended', 'OperatorAccepted'),
  'GET /admin/settings': one(
    'Settings of the fleet: own, inherited and effective, with where each comes from',
    'settings',
  ),
  'GET /admin/settings/*': one(
    'Settings of a scope: own, inherited and effective, with where each comes from',
    'settings',
  ),
  'PATCH /admin/settings': one('Change settings of the fleet', 'changed names with WireWritten'),
  'PATCH /admin/settings/*': one('Change settings of a scope', 'changed names with WireWritten'),
  'GET /admin/state': one('What stood at a moment of the past, folded from the log', 'StateAt'),
  'GET /admin/storage': one(
    'Drives, what artifacts take on them, and what a pull may bring',
    'StorageReport',
  ),
  'GET /admin/telemetry': one('Rows that changed after a cursor, as they are now', 'items, position, more'),
  'GET /admin/telemetry/state': one(
    'A counter that moves on events alone; waits until it has moved',
    'position, changed',
  ),
  'GET /admin/usage': list('Finished calls, summed by model, key, hour or day', 'UsageItem'),
  'GET /admin/what-if': list('The last what-ifs of this api, newest first, without reports', 'WhatIfItem'),
  'POST /admin/what-if': one(
    'Take the logged calls of a time through other hardware or settings',
    'WhatIfItem',
  ),
  'GET /admin/what-if/nightly': list('The summary of each night, newest first', 'WhatIfNight'),
  'GET /admin/what-if/{id}': one('One what-if, with its report once it is done', 'WhatIfItem'),
  'GET /admin/workers': list('Machines, devices, limits, foreign use', 'worker'),
  'PATCH /admin/workers/{id}/limits': one('Limit a device, the cores or the disk of a worker', 'WireWritten'),
};
