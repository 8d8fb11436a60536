import type { WhatIfEvent } from '#domain/events/index.js';
import { BerthFailure } from '#domain/errors.js';
import type { ApiId } from '#domain/ids.js';
import { initialNights, evolveNights } from '#domain/what-if/nights.js';
import type { WhatIfItem, WhatIfReport } from '#domain/wire/index.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { WhatIfs } from './what-ifs.js';

export interface NightlySummaryOptions {
  readonly log: Pick<EventLog, 'append' | 'fold' | 'identity'>;
  readonly whatIfs: Pick<WhatIfs, 'start' | 'ended'>;
  readonly apiId: ApiId;
  /** The apis that run, this one among them. */
  readonly apis: () => Iterable<ApiId>;
  readonly now: () => number;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

/** Local time, when few call. */
const NIGHT_HOUR = 3;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A machine that slept, or was off at night, makes up for it soon after. */
const LOOK_EVERY_MS = 600_000;
/** One of the apis does it; another one only when that did not. */
const OTHERS_AFTER_MS = HOUR_MS;
const MOST_TRIES = 3;

interface Night {
  readonly day: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The last night that is over: the 24 hours up to its hour, by the clock of the place. */
export function lastNight(nowMs: number): Night {
  const at = new Date(nowMs);
  if (at.getHours() < NIGHT_HOUR) at.setDate(at.getDate() - 1);
  at.setHours(NIGHT_HOUR, 0, 0, 0);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return { day, fromMs: at.getTime() - DAY_MS, toMs: at.getTime() };
}

/** Once a night what the calls of the day would have met otherwise, beside the least possible, written into the log. */
export class NightlySummary {
  readonly #o: NightlySummaryOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  /** The night that needs nothing more of this process. */
  #settled: string | undefined;
  #tries = 0;

  constructor(options: NightlySummaryOptions) {
    this.#o = options;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Summarises the last night if nobody has, and it is this api's turn. */
  async look(): Promise<void> {
    const night = lastNight(this.#o.now());
    if (this.#looking || this.#settled === night.day || !this.#isOurs(night)) return;
    this.#looking = true;
    try {
      await this.#summarise(night);
    } catch (error) {
      this.#failed(night, error instanceof Error ? error.message : String(error));
    } finally {
      this.#looking = false;
    }
  }

  #isOurs({ toMs }: Night): boolean {
    const first = [...this.#o.apis()].sort()[0] ?? this.#o.apiId;
    return first === this.#o.apiId || this.#o.now() - toMs >= OTHERS_AFTER_MS;
  }

  async #summarise(night: Night): Promise<void> {
    const { log, whatIfs } = this.#o;
    const { lastDay } = await log.fold(streams.whatIf, initialNights(), evolveNights);
    if (lastDay !== undefined && lastDay >= night.day) {
      this.#settle(night);
      return;
    }
    const begun = begin(whatIfs, night);
    if (begun === undefined) return;
    const { report, error } = await whatIfs.ended(begun.id);
    if (!report) throw new Error(error ?? 'It gave no report.');
    if (report.calls > 0) await this.#write(night, report);
    this.#settle(night);
  }

  async #write({ day }: Night, report: WhatIfReport): Promise<void> {
    const { log, apiId, logger } = this.#o;
    const id = derivedId('WhatIfSummarised', await log.identity(), day);
    const { from, to, calls, leftOut, reproduced, really, asItWas, changes, least, sentence } = report;
    const { decisions, identical } = reproduced;
    const event: WhatIfEvent = {
      type: 'WhatIfSummarised',
      data: {
        ...{ day, from, to, calls, leftOut, decisions, identical },
        ...{ really, asItWas, changes, least, sentence, apiId },
      },
    };
    const outcome = await log.append(
      streams.whatIf,
      [{ id, event, cause: { correlationId: id, causationId: id } }],
      'any',
    );
    if (!outcome.ok) throw new Error(`The event log did not take it: ${outcome.error.kind}.`);
    logger.info({ day }, `The day was summarised: ${sentence}`);
  }

  #settle({ day }: Night): void {
    this.#settled = day;
    this.#tries = 0;
  }

  #failed(night: Night, why: string): void {
    this.#tries += 1;
    const again = this.#tries < MOST_TRIES;
    if (!again) this.#settle(night);
    this.#o.logger.warn(
      { day: night.day },
      `The day was not summarised: ${why} ${again ? 'It is tried again.' : 'Ask for it with `berth what-if --from`.'}`,
    );
  }
}

/** @returns undefined while another what-if runs: the next look finds it ended. */
function begin(whatIfs: Pick<WhatIfs, 'start'>, { fromMs, toMs }: Night): WhatIfItem | undefined {
  try {
    return whatIfs.start({ from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() });
  } catch (error) {
    if (error instanceof BerthFailure && error.error.code === 'conflict') return undefined;
    throw error;
  }
}
