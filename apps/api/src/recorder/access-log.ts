import type { BerthError } from '#domain/errors.js';
import type { CallEventData } from '#domain/events/call-events.js';
import { lineWriter, type Logger } from '#runtime/logger.js';
import { statusOf } from '../gateway/answers.js';
import type { CallTimes } from './call-record.js';
import { isoTime } from './iso-time.js';

/** Of pino's `info`. */
const LEVEL = 30;
/** What has not been written after this long, or is longer than this, is written. */
const FLUSH_AFTER_MS = 100;
const FLUSH_CHARACTERS = 16 * 1024;

/** A call that was refused before it was known whose it is: its body was too long, no JSON, or stopped coming. */
export interface EarlyRefusal {
  readonly callId: string;
  readonly endpoint: string;
  readonly error: BerthError;
  readonly receivedAtMs: number;
  readonly nowMs: number;
}

/**
 * One line for each call that has ended: what came of it, never what was said. At thousands of calls a second a write
 * for each is what costs most: lines are gathered for a moment and written together.
 */
export class AccessLog {
  readonly #logger: Logger;
  readonly #write: (lines: string) => void;
  /** The logger's own fields, as they stand in every line. */
  readonly #bindings: string;
  #lines = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#write = lineWriter(logger);
    this.#bindings = inner(logger.bindings());
  }

  ended(endpoint: string, data: CallEventData<'CallFinished'>, times: CallTimes): void {
    if (!this.#logger.isLevelEnabled('info')) return;
    const { workerId, code, tokens } = data;
    let line = `"call":${text(data.callId)},"endpoint":${text(endpoint)},"model":${text(data.modelKey)}`;
    if (workerId !== undefined) line += `,"worker":${text(workerId)}`;
    line += `,"outcome":"${data.outcome}","status":${data.status}`;
    if (code !== undefined) line += `,"code":${text(code)}`;
    line += `,"attempts":${data.attempts},"tokens":${JSON.stringify(tokens)},"bytesOut":${data.bytesOut}`;
    if (times.firstByteMs !== undefined) line += `,"firstByteMs":${times.firstByteMs}`;
    this.#line(data.stamps.finishedAt, `${line},"totalMs":${times.totalMs}`);
  }

  refused({ callId, endpoint, error, receivedAtMs, nowMs }: EarlyRefusal): void {
    if (!this.#logger.isLevelEnabled('info')) return;
    const fields = {
      call: callId,
      endpoint,
      outcome: 'refused',
      status: statusOf(error),
      code: error.code,
      totalMs: nowMs - receivedAtMs,
    };
    this.#line(isoTime(nowMs), inner(fields));
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines;
    this.#lines = '';
    if (lines !== '') this.#write(lines);
  }

  /** @param members of the line's object, as JSON. */
  #line(time: string, members: string): void {
    this.#lines += `{"level":${LEVEL},"time":"${time}",${this.#bindings},${members},"msg":"call"}\n`;
    if (this.#lines.length >= FLUSH_CHARACTERS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_AFTER_MS);
  }
}

/** Nothing of it has to be escaped in JSON. */
const PLAIN = /^[\w./:@+ -]*$/;
/** As JSON: ids and the names of models are nearly always plain. */
const text = (value: string): string => (PLAIN.test(value) ? `"${value}"` : JSON.stringify(value));

/** The members of an object as JSON, without its braces. */
const inner = (fields: Readonly<Record<string, unknown>>): string => JSON.stringify(fields).slice(1, -1);
