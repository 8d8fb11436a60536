import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { MeasuredMemory } from '#domain/events/worker-events.js';
import { type DeviceId, RAM, type ResidentId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { derivedId, newId } from '#runtime/ids.js';
import { bootId } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import { markedProcesses } from '../engines/engine-family.js';
import type { EngineStateFile, RunningEngine } from '../ports.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter } from './facts.js';
import { whyOf, whyOfResident, type Loader } from './load.js';

/** A killed process is gone within milliseconds; one that the kernel holds is not waited for without end. */
const MOST_LOOKS = 100;
const LOOK_MS = 20;

export interface AdoptOptions {
  readonly home: string;
  readonly engines: RunningEngines;
  readonly loader: Loader;
  readonly facts: FactWriter;
  readonly log: Logger;
}

/**
 * Finds the engines that an agent before this one left running, from their state files, and holds them against the log:
 * what both know is adopted; what only the log knows is found gone; what no log entry explains is stopped once and said.
 */
export async function adoptEngines(state: WorkerState, o: AdoptOptions): Promise<void> {
  const adopted = new Set<ResidentId>();
  for (const file of await readStateFiles(o.home, o.log)) {
    const engine = file.bootId === bootId() ? await o.engines.adopt(file) : undefined;
    if (!engine) {
      await rm(stateFilePath(o.home, file.residentId), { force: true });
      continue;
    }
    const resident = state.residents.get(file.residentId);
    // One that is decided and not told yet was spawned by an agent that did not come to say so: the decision explains it.
    if (!resident) {
      o.log.warn(
        { residentId: file.residentId, pid: file.pid, modelKey: file.modelKey },
        'an engine runs that no log entry explains; it is stopped',
      );
      await engine.stop();
      continue;
    }
    await adoptOne(resident, engine, state, o);
    adopted.add(resident.residentId);
  }
  await stopUnexplained(adopted, o);
  for (const resident of state.residents.values()) {
    if (adopted.has(resident.residentId) || resident.phase === 'planned') continue;
    await o.facts.worker(
      derivedId('ResidentFoundGone', resident.residentId),
      { type: 'ResidentFoundGone', data: { residentId: resident.residentId, pid: resident.pid ?? 0 } },
      whyOfResident(resident, resident.decisionId),
    );
  }
}

async function adoptOne(
  resident: Resident,
  engine: RunningEngine,
  state: WorkerState,
  o: AdoptOptions,
): Promise<void> {
  const decision = state.openDecisions.get(resident.decisionId);
  const stillLoads = resident.phase !== 'ready' && decision !== undefined;
  o.loader.adoptEngine(engine, stillLoads);
  if (stillLoads) await o.loader.sayStarted(engine, resident, decision);
  const measured = resident.phase === 'ready' ? await measuredAnew(engine, resident, o.log) : undefined;
  await o.facts.worker(
    newId(),
    {
      type: 'ResidentAdopted',
      data: {
        residentId: resident.residentId,
        pid: engine.pid,
        ...(measured === undefined ? {} : { measured }),
      },
    },
    whyOfResident(resident, resident.decisionId),
  );
  if (!stillLoads) return;
  // It was loading when the agent before this one went: its end is told by this one, while others are served.
  const agoMs = Math.max(0, Date.now() - Date.parse(resident.loadStartedAt ?? engine.startedAt));
  const startedMs = performance.now() - agoMs;
  void o.loader.finish(engine, decision.data, startedMs, whyOf(decision)).catch((error: unknown) => {
    o.log.error(
      { err: error, residentId: resident.residentId },
      'a load begun by an earlier agent could not be finished',
    );
  });
}

/**
 * What it holds now: it may have grown while nobody looked. What its process takes of an accelerator beside its buffers
 * only a driver tells, a moment later: there it counts as it was measured before.
 */
async function measuredAnew(
  engine: RunningEngine,
  resident: Resident,
  log: Logger,
): Promise<MeasuredMemory | undefined> {
  try {
    const measured = await engine.measure();
    const before = (id: DeviceId) => resident.measured?.byDevice.find(({ deviceId }) => deviceId === id);
    return {
      ...measured,
      byDevice: measured.byDevice.map((device) =>
        device.deviceId === RAM
          ? device
          : { ...device, processBytes: before(device.deviceId)?.processBytes ?? device.processBytes },
      ),
    };
  } catch (error) {
    log.warn(
      { residentId: resident.residentId, reason: String(error) },
      'an adopted engine could not be measured anew: it counts as it was measured before',
    );
    return undefined;
  }
}

/**
 * Engines without a state file that counts: their agent ended between starting one and saying so, or the disk was full,
 * or what they forked outlived them. They are known by their mark, and hold room that nothing answers for.
 */
async function stopUnexplained(adopted: ReadonlySet<ResidentId>, o: AdoptOptions): Promise<void> {
  const folder = join(o.home, 'engines');
  for (let looks = 0; ; looks += 1) {
    const left = markedProcesses(folder).filter((found) => !adopted.has(found.residentId as ResidentId));
    if (left.length === 0) return;
    if (looks === MOST_LOOKS) {
      o.log.error({ pids: left.map(({ pid }) => pid) }, 'processes of lost engines cannot be ended');
      return;
    }
    for (const { pid, residentId } of left) {
      if (looks === 0)
        o.log.warn({ residentId, pid }, 'a process of an engine that no log entry explains is ended');
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

export const stateFilePath = (home: string, id: ResidentId): string => join(home, 'engines', `${id}.json`);

/** Files that cannot be read are set aside with a message: nothing is started or stopped on their word. */
async function readStateFiles(home: string, log: Logger): Promise<readonly EngineStateFile[]> {
  const folder = join(home, 'engines');
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const files: EngineStateFile[] = [];
  for (const name of names.filter((n) => n.endsWith('.json'))) {
    try {
      const parsed = JSON.parse(await readFile(join(folder, name), 'utf8')) as EngineStateFile;
      if (typeof parsed.residentId !== 'string' || typeof parsed.pid !== 'number')
        throw new Error('fields are missing');
      files.push(parsed);
    } catch (error) {
      log.warn(
        { file: name, reason: String(error) },
        'a state file of an engine cannot be read and is left alone',
      );
    }
  }
  return files;
}
