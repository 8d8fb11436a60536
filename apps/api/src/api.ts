import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { WorkerEventType } from '#domain/events/worker-events.js';
import { apiId, type ModelKey } from '#domain/ids.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { openSpool } from '#events/spool.js';
import { decide } from '#placement/decide.js';
import type { ProcessConfig } from '#runtime/config.js';
import { newId } from '#runtime/ids.js';
import type { Running } from '#runtime/lifecycle.js';
import type { Logger } from '#runtime/logger.js';
import { packageRoot } from '#runtime/process-info.js';
import { agentLineToken, engineKey, localSecret } from '#runtime/secrets.js';
import { Access } from './access/access.js';
import { DoorSettings } from './access/door-settings.js';
import { Activity } from './admission/activity.js';
import { Admission } from './admission/admission.js';
import { TermsByWorker } from './admission/terms.js';
import { Decider } from './admission/decider.js';
import { Drains } from './agents/drains.js';
import { Servings } from './agents/servings.js';
import { SlotUse } from './agents/slot-use.js';
import { AgentSessions } from './agents/sessions.js';
import { DashboardPages } from './dashboard/dashboard-pages.js';
import { registerApi, unregisterApi } from './fleet/api-registration.js';
import { CallHistories } from './fleet/call-histories.js';
import { Fleet } from './fleet/fleet.js';
import { LostApis } from './fleet/lost-apis.js';
import { LostWorkers } from './fleet/lost-workers.js';
import { Engines } from './gateway/engines.js';
import { createFront } from './gateway/front.js';
import { Gateway, stopping } from './gateway/gateway.js';
import { ModelVerdicts } from './gateway/model-verdicts.js';
import { Resolver } from './gateway/resolve.js';
import { listen } from './listen.js';
import { DiskWatch } from './live/disk-watch.js';
import { healthOf } from './live/health.js';
import { createLive } from './live/live.js';
import { takeUpgrades } from './live/socket/upgrades.js';
import { Management } from './management.js';
import { Metrics } from './live/metrics.js';
import { GrowBack } from './upkeep/grow-back.js';
import { OperatorBook } from './operator/operator-book.js';
import { OperatorLoads } from './operator/operator-loads.js';
import { IdleUnload } from './upkeep/idle-unload.js';
import { Preload } from './upkeep/preload.js';
import { ProbeContexts } from './upkeep/probe-contexts.js';
import { RepinCores } from './upkeep/repin-cores.js';
import { Upkeep } from './upkeep/upkeep.js';
import { AccessLog } from './recorder/access-log.js';
import { Recorder } from './recorder/recorder.js';
import { ServingFacts } from './recorder/serving-facts.js';
import { replayProcesses } from './replay/replay-process.js';
import { Replays } from './replay/replays.js';
import { NightlySummary } from './what-if/nightly-summary.js';
import { WhatIfs } from './what-if/what-ifs.js';

const CALLS_DEADLINE_MS = 10_000;
const SPOOL_DEADLINE_MS = 5000;

/** Puts the api together, by hand: what has a life is made here, started in order, and ended in the reverse order. */
export async function startApi(config: ProcessConfig, logger: Logger): Promise<Running> {
  const id = apiId(newId());
  const now = Date.now;
  const version = packageVersion();
  const log = openEventLog({ url: config.eventstoreUrl, by: `api:${id}`, now, log: forLibrary(logger) });
  const spoolRoot = join(config.home, 'spool');
  const spoolDir = join(spoolRoot, id);
  mkdirSync(spoolRoot, { recursive: true, mode: 0o700 });
  const spool = openSpool({
    dir: spoolDir,
    ...(config.spoolMaxBytes === undefined ? {} : { maxBytes: config.spoolMaxBytes }),
    log,
    now,
    warn: (message) => logger.warn(message),
    onLost: (loss) => logger.error(loss, 'call events were lost'),
  });
  const disk = new DiskWatch(config.home);
  const fleet = new Fleet(log);
  const histories = new CallHistories(log, now);
  const activity = new Activity(now);
  const sessions = new AgentSessions({ apiId: id, log: logger, now });
  const lostWorkers = new LostWorkers({ fleet, sessions, log, logger, now });
  const drains = new Drains(fleet, sessions, activity);
  const servings = new Servings(activity, fleet, sessions, () => upkeep.poke());
  const terms = new TermsByWorker(fleet.settings);
  const decider = new Decider({
    terms,
    fleet,
    log,
    sessions,
    activity,
    callHistories: histories,
    decide,
    logger,
    now,
    onSettled: () => admission.schedule(),
  });
  const slots: SlotUse = new SlotUse({
    sessions,
    fleet,
    activity,
    waitingFor: (model) => admission.waitingFor(model),
    onShare: () => admission.schedule(),
  });
  const admission: Admission = new Admission({
    terms,
    fleet,
    activity,
    drains,
    callHistories: histories,
    decider,
    isConnected: (worker) => sessions.isConnected(worker),
    slots,
    onKeepAlive: () => upkeep.poke(),
    now,
  });
  const forChores = {
    fleet,
    activity,
    callHistories: histories,
    terms,
    decider,
    waiting: () => admission.waiting,
    waitingFor: (model: ModelKey) => admission.waitingFor(model),
    logger,
    now,
  };
  const preload = new Preload(forChores);
  const upkeep: Upkeep = new Upkeep({
    fleet,
    isConnected: (worker) => sessions.isConnected(worker),
    chores: [
      new RepinCores(forChores),
      new IdleUnload({ ...forChores, preload }),
      new GrowBack(forChores),
      new ProbeContexts(forChores),
      preload,
    ],
    logger,
  });
  const metrics: Metrics = new Metrics({
    callsUnderWay: () => gateway.callsUnderWay,
    callsWaiting: () => admission.queue.length,
    residents: () => [...fleet.workers.values()].reduce((sum, worker) => sum + worker.residents.size, 0),
    eventsWaiting: () => spool.waitingEvents,
    eventsLost: () => spool.lost,
  });
  const access = new AccessLog(logger);
  const serving = new ServingFacts(spool, fleet, now);
  const recorder = new Recorder({
    spool,
    apiId: id,
    histories,
    onEnded: (endpoint, data, times) => {
      metrics.ended(endpoint, data, times);
      access.ended(endpoint, data, times);
      serving.ended(data);
    },
    now,
  });
  const engines = new Engines((resident) => engineKey(config.home, resident));
  followResidents(fleet, { engines, sessions, activity, slots });
  const door = new Access({ door: new DoorSettings(fleet.settings), keys: fleet.keys, now });
  const verdicts = new ModelVerdicts({
    fleet,
    inputNow: (worker, model) => decider.inputNow(worker, model),
  });
  const gateway: Gateway = new Gateway({
    access: door,
    fleet,
    admission,
    recorder,
    engines,
    resolver: new Resolver(
      () => fleet.models,
      fleet.settings,
      (worker) => fleet.worker(worker)?.name,
    ),
    progress: (view) => view.loading && sessions.progressOf(view.loading.residentId)?.fraction,
    bytesPerToken: (model) => histories.bytesPerToken(model),
    speaks: (worker, { contract }, capability) =>
      fleet
        .worker(worker)
        ?.engines.some(
          ({ kind, capabilities }) => kind === contract.engine.kind && capabilities.includes(capability),
        ) === true,
    unloadSoon: (model, call) => {
      for (const { resident } of fleet.residentsOf(model))
        activity.unloadSoon(resident.residentId, resident.modelKey, call);
      upkeep.poke();
    },
    uploads: join(config.home, 'uploads'),
    groupKey: localSecret(config.home, 'group-key'),
    health: () => healthOf({ fleet, sessions, spool, diskFreeBytes: () => disk.freeBytes, version, now }),
    metrics,
    verdicts,
    onEarlyRefusal: (refusal) => {
      metrics.refused(refusal.endpoint);
      access.refused(refusal);
    },
    logger,
    now,
  });
  const operator = new OperatorBook(log);
  new OperatorLoads({ book: operator, fleet, admission, log, logger, now });
  const live = createLive({ access: door, log, fleet, admission, sessions, activity, logger, now });
  const { eventstoreUrl, databaseUrl } = config;
  const whatIfs = new WhatIfs({ eventstoreUrl, now });
  const nightly = new NightlySummary({
    log,
    whatIfs,
    apiId: id,
    apis: () => fleet.apis.apis.keys(),
    now,
    logger,
  });
  const replays = new Replays({ start: replayProcesses({ eventstoreUrl, databaseUrl }), now });
  const management = new Management({
    access: door,
    fleet,
    log,
    admission,
    sessions,
    operator,
    hub: live.hub,
    decider,
    whatIfs,
    replays,
    lineToken: agentLineToken(config.home),
    config,
    logger,
  });
  const pages = new DashboardPages(join(packageRoot(), 'dist', 'apps', 'dashboard'));
  const server = createFront(gateway, (req, res) => {
    if (!pages.handle(req, res)) management.handle(req, res);
  });
  takeUpgrades(server, live.upgrade);
  await fleet.start();
  await listen(server, config.host, config.port);
  const { port } = server.address() as AddressInfo;
  const lost = new LostApis({ fleet, log, apiId: id, spoolRoot, logger, now });
  const stopAsked = new AbortController();
  const stops = () => stopAsked.signal.aborted;
  let registered = false;
  const rest = async () => {
    const agentLine = await management.start(server);
    if (stops()) return;
    registered = true;
    await registerApi(log, { apiId: id, agentLine, version, now });
    if (stops()) return;
    lost.start();
    lostWorkers.start();
    operator.start();
    upkeep.start();
    nightly.start();
  };
  return {
    details: { port, url: `http://${urlHost(config.host)}:${port}`, apiId: id },
    rest,
    stop: async () => {
      stopAsked.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      live.hangUp();
      admission.close(stopping());
      await gateway.stop(CALLS_DEADLINE_MS);
      server.closeAllConnections();
      await closed;
      await lost.stop();
      lostWorkers.stop();
      await upkeep.stop();
      servings.close();
      verdicts.stop();
      slots.close();
      await operator.stop();
      nightly.stop();
      await whatIfs.stop();
      replays.stop();
      sessions.close();
      await live.stop();
      await management.close();
      engines.close();
      if (!(await spool.drain(SPOOL_DEADLINE_MS))) {
        logger.warn({ waiting: spool.waitingEvents }, 'call events stay in the spool for the next api');
      }
      await spool.close();
      access.flush();
      disk.stop();
      removeIfEmpty(spoolDir);
      if (registered) await unregisterApi(log, id, logger);
      await fleet.stop();
      await closeLog(log, logger);
    },
  };
}

const ENDS: ReadonlySet<WorkerEventType> = new Set([
  'ResidentEvicted',
  'ResidentCrashed',
  'ResidentFoundGone',
  'LoadFailed',
]);

/** What is kept per resident goes when the resident does. */
function followResidents(
  fleet: Fleet,
  parts: { engines: Engines; sessions: AgentSessions; activity: Activity; slots: SlotUse },
): void {
  fleet.listen({
    onWorkerEvent: ({ event }) => {
      if (event.type === 'ResidentReady') {
        parts.sessions.forget(event.data.residentId);
      } else if (ENDS.has(event.type) && 'residentId' in event.data) {
        const { residentId } = event.data;
        parts.engines.forget(residentId);
        parts.sessions.forget(residentId);
        parts.activity.forget(residentId);
        parts.slots.forget(residentId);
      }
    },
  });
}

const forLibrary = (logger: Logger) => ({
  warn: (message: string) => logger.warn(message),
  info: (message: string) => logger.info(message),
  error: (message: string) => logger.error(message),
});

const urlHost = (host: string): string => {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
};

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // Events wait in it: the next api takes them over.
  }
}

/** The client's own end can wait for ever on a read that was left; the process must not. */
async function closeLog(log: EventLog, logger: Logger): Promise<void> {
  const timeout = new Promise<'late'>((resolve) => setTimeout(() => resolve('late'), 2000).unref());
  if ((await Promise.race([log.close(), timeout])) === 'late')
    logger.warn('the event log client did not close in time');
}
