import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { BerthEvent, FleetEvent, Recorded, WorkerEvent } from '#domain/events/index.js';
import { evolveFleet, initialFleet } from '#domain/fleet/fleet.js';
import { workerId as asWorkerId, type WorkerId } from '#domain/ids.js';
import { diskLimitOf } from '#domain/worker/disk-limit.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { catalogue } from '#events/catalogue.js';
import { Snapshots } from '#events/snapshots/snapshots.js';
import { streams } from '#events/streams.js';
import { readConfig } from '#runtime/config.js';
import { newId } from '#runtime/ids.js';
import { runProcess, type Running } from '#runtime/lifecycle.js';
import { createLogger } from '#runtime/logger.js';
import { bootId } from '#runtime/process-info.js';
import { agentLineToken, engineKey } from '#runtime/secrets.js';
import { adoptEngines } from './agent/adopt.js';
import { CoreBinder } from './agent/bind.js';
import { RunningEngines } from './agent/engines.js';
import { Evictor } from './agent/evict.js';
import { Executor } from './agent/executor.js';
import { FactWriter } from './agent/facts.js';
import { FreedMemory } from './agent/freed.js';
import { InstalledEngines } from './agent/installed-engines.js';
import { Loader } from './agent/load.js';
import { takeHome } from './agent/only-agent.js';
import { project } from './agent/project.js';
import { StillEngines } from './agent/still-engines.js';
import { startReadings } from './agent/readings.js';
import { register, registrationOf } from './agent/register.js';
import { OperatorTasks } from './operator/operator-tasks.js';
import { hubAccess } from './pull/hub.js';
import { PullTasks } from './pull/pull-tasks.js';
import { createDrivers } from './engines/index.js';
import { watchElsewhere } from './hardware/elsewhere.js';
import { watchBandwidth } from './agent/bandwidth.js';
import { AgentLine } from './line/line.js';
import { ReadingsLog } from './line/readings-log.js';
import { startCatalog } from './models/catalog.js';
import { modelRoots } from './models/roots.js';
import { writeSmokeModel } from './agent/smoke.js';

/** Facts that the log does not take within this at shutdown are told again by the next agent. */
const LAST_FACTS_MS = 8000;

const log = createLogger('agent');

/** The worker's id is made once and stays with its home. */
function readWorkerId(home: string): WorkerId {
  const file = join(home, 'worker-id');
  try {
    writeFileSync(file, newId(), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return asWorkerId(readFileSync(file, 'utf8').trim());
}

/** How soon a weight file that was replaced or removed is noticed under its resident; a look is a stat per file. */
const FILES_EVERY_MS = 500;

/** As in the table of settings, which `berth up` passes on. */
const ENGINE_SILENCE_SECONDS = 30;

/** As a temporary failure, so that supervisors that start again on failure alone do. */
const RESTART_CODE = 75;
/** Lines of the log reach their file first. */
const RESTART_MS = 100;

/** Fewer new events than this are folded again faster than a snapshot is worth. */
const SNAPSHOT_AFTER_EVENTS = 200;

/** Subscribes after a revision, and resolves once everything written so far has been handled. */
function follow<E extends BerthEvent>(
  events: EventLog,
  stream: string,
  onEvent: (recorded: Recorded<E>) => void,
  afterRevision = -1,
): Promise<Subscription> {
  return new Promise((resolve, reject) => {
    const subscription: Subscription = events.subscribe<E>(
      stream,
      {
        onEvent,
        onCaughtUp: () => {
          resolve(subscription);
        },
      },
      { afterRevision },
    );
    subscription.ended.catch((error: unknown) => {
      reject(error instanceof Error ? error : new Error(String(error)));
    });
  });
}

async function start(): Promise<Running> {
  const config = readConfig(process.env);
  mkdirSync(join(config.home, 'engines'), { recursive: true, mode: 0o700 });
  const only = await takeHome(config.home);
  const workerId = readWorkerId(config.home);
  const events = openEventLog({
    url: config.eventstoreUrl,
    by: `agent:${workerId}`,
    now: () => Date.now(),
    log,
  });
  const facts = new FactWriter(events, workerId, log);
  const drivers = createDrivers({
    home: config.home,
    log,
    engineKey: (id: string) => engineKey(config.home, id),
    ...(config.llamaServerBin === undefined ? {} : { llamaServerBin: config.llamaServerBin }),
  });
  const installed = new InstalledEngines({
    drivers,
    say: async (now) => {
      await facts.ofItself({ type: 'WorkerRegistered', data: registrationOf(now) });
    },
    log,
  });
  const probed = await installed.probe();
  if (probed.length === 0)
    throw new Error('No engine can run on this machine: see the lines above in the agent log.');
  const engines = new RunningEngines(drivers);

  const catalog = await startCatalog({ log: events, workerId, models: config.models, logger: log });
  if (catalog.count() === 0) {
    await writeSmokeModel(config.models, log);
    await catalog.rescan();
  }
  const filesOf = catalog.filesOf.bind(catalog);

  const line = new AgentLine({
    token: agentLineToken(config.home),
    hello: () => ({ workerId, name: hostname(), bootId: bootId(), agentVersion: '0.1.0' }),
    onProject: (request) => project(request, { workerId, engines, facts, filesOf }),
    log,
  });
  const freed = new FreedMemory(log);
  const evictor = new Evictor(engines, line, facts, log, freed);
  const loader = new Loader({
    engines,
    line,
    facts,
    filesOf,
    log,
    state: () => executor.state,
    freed,
    onLoading: (loading) => catalog.pauseHashing(loading),
    onExit: (id, exit) => {
      executor
        .crashed(id, exit)
        .catch((error: unknown) => log.error({ err: error }, 'a crash could not be written'));
    },
  });
  const snapshots = new Snapshots({ folder: join(config.home, 'snapshots'), warn: (said) => log.warn(said) });
  const own = catalogue.worker(workerId);
  // A log that is away is waited for below; without its answer no snapshot counts.
  const known = await snapshots.read(events, own).catch(() => undefined);
  const executor: Executor = new Executor({
    workerId,
    engines,
    evictor,
    loader,
    facts,
    binder: new CoreBinder(engines, log),
    log,
    installed,
    isServing: (id) => line.isServing(id),
    ...(known ? { state: known.state } : {}),
  });

  let last = known?.last;
  const decisions = await follow<WorkerEvent>(
    events,
    streams.worker(workerId),
    (recorded) => {
      last = { revision: recorded.revision, eventId: recorded.id };
      executor.fold(recorded);
    },
    known?.last.revision,
  );
  if (last && last.revision - (known?.last.revision ?? -1) >= SNAPSHOT_AFTER_EVENTS)
    await snapshots.write(events, own, { state: executor.state, last });

  const elsewhere = await watchElsewhere();
  const roots = modelRoots(config.models, process.env).map(({ path }) => path);
  const gpus = await register(executor.state, workerId, config, probed, facts, log, roots, elsewhere.cpu);
  await adoptEngines(executor.state, { home: config.home, engines, loader, facts, log });
  const adopted = engines.all().length;
  const kept = new ReadingsLog(events, workerId, log);
  const readings = startReadings({
    state: () => executor.state,
    engines,
    line,
    facts,
    log,
    gpus,
    kept,
    freed,
  });
  const bandwidth = watchBandwidth(() => executor.state, facts, log);
  await readings.first;

  let fleet = initialFleet();
  let live = false;
  const apis = await follow<FleetEvent>(events, streams.apis, (recorded) => {
    fleet = evolveFleet(fleet, recorded);
    if (live) line.follow(fleet);
  });
  live = true;
  line.follow(fleet);
  executor.goLive();
  const operator = new OperatorTasks({
    workerId,
    log: events,
    facts,
    executor,
    catalog,
    models: config.models,
    adoptedEngines: () => adopted,
    // Nothing is ended in order: its engines and what it had under way are the next agent's.
    restart: () => setTimeout(() => process.exit(RESTART_CODE), RESTART_MS),
    logger: log,
  });
  operator.start();
  const pulls = new PullTasks({
    workerId,
    log: events,
    facts,
    catalog,
    models: config.models,
    access: hubAccess(process.env),
    diskLimit: () => diskLimitOf(executor.state.limits),
    logger: log,
  });
  pulls.start();
  const files = setInterval(() => executor.evictReplaced(), FILES_EVERY_MS);
  files.unref();
  installed.watch();
  const { engineSilenceSeconds = ENGINE_SILENCE_SECONDS } = config;
  const still =
    engineSilenceSeconds === 0
      ? undefined
      : new StillEngines({
          serving: () => executor.serving(),
          silenceMs: engineSilenceSeconds * 1000,
          log,
        }).start();

  return {
    details: { workerId, engines: probed.map((e) => e.kind).join(','), models: catalog.count() },
    stop: async () => {
      clearInterval(files);
      still?.stop();
      await Promise.all([operator.stop(), pulls.stop()]);
      const giveUp = setTimeout(() => facts.close(), LAST_FACTS_MS);
      await installed.stop();
      await executor.shutDown();
      clearTimeout(giveUp);
      await readings.stop();
      elsewhere.stop();
      await Promise.all([kept.stop(), bandwidth.stop()]);
      line.close();
      await catalog.stop();
      await Promise.all([decisions.stop(), apis.stop()]);
      await events.close();
      only.release();
    },
  };
}

await runProcess('agent', log, start);
