import { readdirSync, rmdirSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { CallEvent, CallEventData, LogPosition } from '#domain/events/index.js';
import type { KnownApi } from '#domain/fleet/fleet.js';
import type { ApiId } from '#domain/ids.js';
import type { EventLog } from '#events/event-log.js';
import { readUntil } from '#events/read-until.js';
import { openSpool } from '#events/spool.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import { bootId, isAlive } from '#runtime/process-info.js';
import { callFinishedId } from '../recorder/recorder.js';
import type { Fleet } from './fleet.js';

export interface LostApisOptions {
  readonly fleet: Fleet;
  readonly log: EventLog;
  readonly apiId: ApiId;
  /** Holds one spool folder for each api of this home. */
  readonly spoolRoot: string;
  readonly logger: Logger;
  readonly now: () => number;
}

const EVERY_MS = 15_000;
const ADOPT_DRAIN_MS = 30_000;
/** A folder that is younger may belong to an api that has not told the log yet. */
const FOLDER_AGE_MS = 60_000;

/**
 * Closes what apis that are gone have left open: their spools are appended, the log is told that they are lost, and their
 * calls without an end are finished as abandoned. Every id is derived, so that two that do it write the same events.
 */
export class LostApis {
  readonly #o: LostApisOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: LostApisOptions) {
    this.#o = options;
  }

  /** The first look is awaited by nobody: the front door does not depend on it. */
  start(): void {
    this.#timer = setInterval(() => void this.check(), EVERY_MS);
    this.#timer.unref();
    void this.check();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  /** One look, or the one under way. */
  check(): Promise<void> {
    this.#running ??= this.#check()
      .catch((error: unknown) => {
        this.#o.logger.warn({ err: error }, 'what lost apis left could not be closed; tried again later');
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async #check(): Promise<void> {
    for (const api of this.#o.fleet.apis.apis.values()) {
      if (this.#stopped) return;
      if (api.apiId === this.#o.apiId || !isLost(api)) continue;
      await this.#adoptSpool(api.apiId);
      // The calls first: an api that dies in between leaves this one to be found again.
      await this.#closeCalls(api);
      await this.#sayLost(api);
    }
    for (const folder of this.#leftFolders()) {
      if (this.#stopped) return;
      await this.#adoptSpool(folder);
    }
  }

  async #sayLost(api: KnownApi): Promise<void> {
    const { log, apiId, logger } = this.#o;
    const reason = `its process ${api.pid} on ${api.host} is gone`;
    const outcome = await log.append(
      streams.apis,
      [
        {
          id: derivedId('ApiLost', api.apiId),
          event: { type: 'ApiLost', data: { apiId: api.apiId, foundBy: apiId, reason } },
          cause: { correlationId: api.apiId, causationId: api.apiId },
        },
      ],
      'any',
    );
    if (!outcome.ok) throw new Error(`ApiLost of ${api.apiId} could not be written: ${outcome.error.kind}`);
    logger.warn({ lost: api.apiId, reason }, 'another api was lost; its calls are closed');
  }

  async #closeCalls(api: KnownApi): Promise<void> {
    const open = await this.#openCalls(api);
    for (const call of open.values()) {
      const outcome = await this.#o.log.append(
        streams.calls(call.modelKey),
        [
          {
            id: callFinishedId(call.callId),
            event: { type: 'CallFinished', data: this.#abandoned(call) },
            cause: { correlationId: call.callId, causationId: derivedId('ApiLost', api.apiId) },
          },
        ],
        'any',
      );
      if (!outcome.ok)
        throw new Error(`the end of call ${call.callId} could not be written: ${outcome.error.kind}`);
    }
    if (open.size > 0)
      this.#o.logger.info({ lost: api.apiId, calls: open.size }, 'calls of a lost api were closed');
  }

  /** Nobody knows what the caller got; its connection broke with the api. */
  #abandoned(call: CallEventData<'CallStarted'>): CallEventData<'CallFinished'> {
    return {
      callId: call.callId,
      apiId: call.apiId,
      modelKey: call.modelKey,
      outcome: 'abandoned',
      status: 499,
      code: 'api_lost',
      attempts: 0,
      stamps: { receivedAt: call.receivedAt, finishedAt: new Date(this.#o.now()).toISOString() },
      tokens: {},
      timings: {},
      bytesOut: 0,
    };
  }

  /** Its calls that have no end, read from its start to the log's end. */
  async #openCalls(api: KnownApi): Promise<Map<string, CallEventData<'CallStarted'>>> {
    const open = new Map<string, CallEventData<'CallStarted'>>();
    const commit = BigInt(api.startedPosition);
    const after: LogPosition = { commit, prepare: commit };
    await readUntil(this.#o.log, ['calls-'], after, (recorded) => {
      const event = recorded.event as CallEvent;
      if (event.data.apiId !== api.apiId) return true;
      if (event.type === 'CallStarted') open.set(event.data.callId, event.data);
      else open.delete(event.data.callId);
      return true;
    });
    return open;
  }

  /** Folders of apis that no fold names: stopped in order with something left, or never registered. */
  #leftFolders(): readonly string[] {
    const { spoolRoot, fleet, apiId, now } = this.#o;
    const known = new Set<string>([apiId, ...fleet.apis.apis.keys()]);
    return readdirSync(spoolRoot, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !known.has(entry.name))
      .map((entry) => entry.name)
      .filter((name) => now() - statSync(join(spoolRoot, name)).mtimeMs > FOLDER_AGE_MS);
  }

  async #adoptSpool(name: string): Promise<void> {
    const { spoolRoot, log, logger, now } = this.#o;
    const dir = join(spoolRoot, name);
    if (!isFolder(dir)) return;
    const spool = openSpool({ dir, log, now, warn: (message) => logger.warn(message) });
    const drained = await spool.drain(ADOPT_DRAIN_MS);
    await spool.close();
    if (!drained) throw new Error(`The spool in ${dir} could not be appended in time.`);
    try {
      rmdirSync(dir);
    } catch (error) {
      // What was set aside as damaged stays for a person to look at.
      logger.info({ dir, why: String(error) }, 'a spool folder of an api that is gone was kept');
    }
  }
}

function isFolder(dir: string): boolean {
  try {
    return statSync(dir).isDirectory();
  } catch {
    // Never made, or adopted by another api already.
    return false;
  }
}

/** Known to be gone: of this machine, and of another boot or with no such process. Of other machines nothing is known. */
const isLost = (api: KnownApi): boolean =>
  api.host === hostname() && (api.bootId !== bootId() || !isAlive(api.pid, api.pidStartTicks));
