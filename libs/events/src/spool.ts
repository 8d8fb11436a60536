import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIB, formatBytes } from '#domain/units.js';
import { BackOff, pause } from './back-off.js';
import { tooLargeAlone } from './codec.js';
import { type EncodedAppends, encodedAppendsOf } from './encoded-appends.js';
import type { EventLog, NewEvent } from './event-log.js';
import { formatEntries, type SpoolEntry, type SpoolText } from './spool-format.js';
import { type PairPart, SpoolRoom } from './spool-room.js';
import { entryBytes, orphanedSegments, Segment, textBytes } from './spool-segment.js';
import { appendGrouped, BATCH_EVENTS, takeBatch } from './spool-append.js';

export interface Loss {
  /** Since the last time that a loss was said. */
  readonly events: number;
  /** Since the start. */
  readonly total: number;
  readonly reason: string;
}

export interface SpoolOptions {
  /** Own to Berth; made when it is not there. Several processes may share it. */
  readonly dir: string;
  /** Bound of what may wait, 64 MiB when left out. */
  readonly maxBytes?: number;
  readonly log: EventLog;
  readonly now: () => number;
  /** Told of losses, at most once in a flush. */
  readonly onLost?: (loss: Loss) => void;
  readonly warn?: (message: string) => void;
  readonly backOff?: BackOff;
}

/** An event, or what makes it: called once, when the spool writes, so that the hot path does not put it together. */
export type Fact = NewEvent | (() => NewEvent);

export interface Spool {
  /**
   * Takes a fact of the hot path. Never throws, never waits; on disk within 10 ms.
   * @param part says that the fact is half of a pair
   */
  record(stream: string, fact: Fact, part?: PairPart): void;
  /** Events that were dropped since the start: the bound was reached, or they could not be written at all. */
  readonly lost: number;
  /** Why the last write to disk failed; undefined when it did not. */
  readonly writeFailure: string | undefined;
  /** What the log has not acknowledged yet. */
  readonly waitingBytes: number;
  readonly waitingEvents: number;
  /** True once the log has everything; false when the time ran out: the rest stays on disk. */
  drain(deadlineMs: number): Promise<boolean>;
  /** Writes what is in memory to disk and stops; the next start appends what waits. */
  close(): Promise<void>;
}

interface Noted {
  readonly stream: string;
  readonly fact: Fact;
  readonly part: PairPart | undefined;
}

const MAX_BYTES = 64 * MIB;
const FLUSH_AFTER_MS = 8;
/** What comes in small numbers is appended this often and not one by one: an append costs its writer what 50 events cost. */
const APPEND_EVERY_MS = 100;
/** How long the log must have had everything before the file is emptied. */
const TIDY_AFTER_MS = 1000;
const CLOSE_WITHIN_MS = 1000;
const SEGMENT_BYTES = 2 * MIB;
/** Segments of processes that are gone are looked for this often. */
const ADOPT_EVERY_MS = 60_000;

/**
 * Call events on their way to the log: kept in files until the log has acknowledged them, appended in order per
 * stream under their own ids, so that appending one twice changes nothing.
 * @throws when the folder cannot be made.
 */
export function openSpool(options: SpoolOptions): Spool {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  return new FileSpool(options);
}

class FileSpool implements Spool {
  lost = 0;
  waitingBytes = 0;
  waitingEvents = 0;
  writeFailure: string | undefined;
  readonly #dir: string;
  readonly #room: SpoolRoom;
  readonly #segmentBytes: number;
  readonly #appends: EncodedAppends;
  readonly #now: () => number;
  readonly #onLost: (loss: Loss) => void;
  readonly #warn: (message: string) => void;
  readonly #backOff: BackOff;
  readonly #stopping = new AbortController();
  readonly #pumping: Promise<void>;
  readonly #adopting: NodeJS.Timeout;
  /** Oldest first; the last one is written to. */
  #segments: Segment[];
  #active: Segment;
  #number = 0;
  #unwritten: Noted[] = [];
  #appendedAtMs = -Infinity;
  #flushTimer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #unsaid: { events: number; reason: string } = { events: 0, reason: '' };
  #wake: () => void = () => undefined;

  constructor(options: SpoolOptions) {
    this.#dir = options.dir;
    this.#room = new SpoolRoom(options.maxBytes ?? MAX_BYTES);
    this.#segmentBytes = Math.min(SEGMENT_BYTES, Math.ceil(this.#room.maxBytes / 4));
    this.#appends = encodedAppendsOf(options.log);
    this.#now = options.now;
    this.#onLost = options.onLost ?? (() => undefined);
    this.#warn = options.warn ?? (() => undefined);
    this.#backOff = options.backOff ?? new BackOff({ mostMs: 5000 });
    this.#segments = [];
    this.#adopt();
    this.#active = this.#newSegment();
    this.#segments.push(this.#active);
    this.#adopting = setInterval(() => this.#adopt(), ADOPT_EVERY_MS);
    this.#adopting.unref();
    this.#pumping = this.#pump();
  }

  record(stream: string, fact: Fact, part?: PairPart): void {
    this.waitingEvents++;
    this.#unwritten.push({ stream, fact, part });
    this.#soon();
  }

  async drain(deadlineMs: number): Promise<boolean> {
    const until = Date.now() + deadlineMs;
    await this.#flush();
    while (this.waitingEvents > 0 || this.#segments.some((s) => s.entries === undefined)) {
      if (Date.now() >= until || this.#stopping.signal.aborted) return false;
      await pause(Math.min(5, until - Date.now()), this.#stopping.signal);
    }
    return true;
  }

  async close(): Promise<void> {
    clearInterval(this.#adopting);
    await this.#flush();
    this.#stopping.abort();
    this.#wake();
    // An append that is under way may take its deadline; what it was about stays in the file.
    await Promise.race([this.#pumping, pause(CLOSE_WITHIN_MS, new AbortController().signal)]);
    for (const segment of this.#segments) {
      if (segment.entries && segment.confirmed === segment.entries.length) segment.remove();
      else segment.closeFile();
    }
  }

  #soon(): void {
    this.#flushTimer ??= setTimeout(() => void this.#flush(), FLUSH_AFTER_MS);
  }

  /** One write for everything since the last; a second waits for the first, so that the order stands. */
  async #flush(): Promise<void> {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    while (this.#writing) await this.#writing;
    const facts = this.#unwritten;
    this.#unwritten = [];
    const texts: SpoolText[] = [];
    for (const noted of facts) this.#textOf(noted, texts);
    this.#sayLost();
    if (texts.length === 0) return;
    const segment = this.#active;
    this.#writing = new Promise((resolve) => {
      segment.write(texts, (error) => {
        this.#writing = undefined;
        this.#written(error);
        if (segment.heldBytes >= this.#segmentBytes || (segment.memoryOnly && !error)) this.#rotate();
        this.#wake();
        resolve();
      });
    });
    await this.#writing;
  }

  /** Serialised once, for the file and for the log. */
  #textOf({ stream, fact, part }: Noted, texts: SpoolText[]): void {
    const refused = (why: string) => {
      this.waitingEvents--;
      this.#lose(1, why);
    };
    const unfit = (why: string) => {
      this.#room.lose(part);
      refused(why);
    };
    try {
      const event = this.#appends.text(typeof fact === 'function' ? fact() : fact);
      const dataBytes = Buffer.byteLength(event.data);
      const text: SpoolText = { stream, event, dataBytes, metadataBytes: Buffer.byteLength(event.metadata) };
      const bytes = textBytes(text);
      const refusal = tooLargeAlone(event, bytes - stream.length);
      if (refusal !== undefined) {
        unfit(refusal);
        return;
      }
      if (!this.#room.takes(bytes, this.waitingBytes, part)) {
        const waiting = `${formatBytes(this.waitingBytes)} of ${formatBytes(this.#room.maxBytes)}`;
        refused(`The spool is full: ${waiting} wait for the event log.`);
        return;
      }
      this.waitingBytes += bytes;
      texts.push(text);
    } catch (error) {
      unfit(`An event could not be serialised: ${String(error)}`);
    }
  }

  #written(error: Error | null): void {
    if (error && this.writeFailure === undefined)
      this.#warn(
        `The spool cannot write to ${this.#dir}: ${error.message}. Call events are kept in memory until the event log has them, and would not survive this process.`,
      );
    if (!error && this.writeFailure !== undefined) this.#warn(`The spool writes to ${this.#dir} again.`);
    this.writeFailure = error?.message;
  }

  #rotate(): void {
    this.#active.seal();
    // Only the first segment is being appended from; the others are read again when their turn comes.
    if (this.#segments[0] !== this.#active) this.#active.unload();
    this.#active = this.#newSegment();
    this.#segments.push(this.#active);
  }

  #newSegment(): Segment {
    let segment = Segment.create(this.#dir, ++this.#number);
    const taken = new Set(this.#segments.map((s) => s.path));
    while (taken.has(segment.path)) segment = Segment.create(this.#dir, ++this.#number);
    return segment;
  }

  /** Takes over what processes that are gone have left behind. */
  #adopt(): void {
    try {
      const found = orphanedSegments(this.#dir, new Set(this.#segments.map((s) => s.path)));
      for (const segment of found) this.waitingBytes += segment.fileBytes;
      this.#segments = [...found, ...this.#segments];
      if (found.length > 0) this.#wake();
    } catch (error) {
      this.#warn(`The spool folder ${this.#dir} cannot be listed: ${String(error)}`);
    }
  }

  #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #pump(): Promise<void> {
    while (!this.#stopped()) {
      const segment = this.#segments[0];
      const entries = segment && (await this.#entriesOf(segment));
      if (!segment || !entries) continue;
      const fresh = entries.length - segment.confirmed;
      if (segment === this.#active && fresh > 0 && fresh < BATCH_EVENTS) await this.#paced();
      const batch = takeBatch(entries, segment.confirmed);
      if (batch.length > 0) {
        await this.#append(batch);
        if (this.#stopped()) return;
        segment.confirm(batch.length);
        this.waitingEvents -= batch.length;
        for (const entry of batch) this.waitingBytes -= entryBytes(entry);
      } else if (segment.sealed) {
        segment.remove();
        this.#segments = this.#segments.filter((s) => s !== segment);
      } else {
        const more = await this.#more(segment);
        if (!more && !this.#writing) segment.reset();
      }
    }
  }

  /** Not before the last append is a while ago. */
  async #paced(): Promise<void> {
    const wait = this.#appendedAtMs + APPEND_EVERY_MS - performance.now();
    if (wait > 0) await pause(wait, this.#stopping.signal);
    this.#appendedAtMs = performance.now();
  }

  /** Waits for work; false when there was none for a while, so that what the log has can leave the file. */
  async #more(segment: Segment): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const woken = await new Promise<boolean>((resolve) => {
      this.#wake = () => resolve(true);
      if (this.#stopping.signal.aborted || segment !== this.#segments[0]) resolve(true);
      if (segment.fileBytes > 0) timer = setTimeout(() => resolve(false), TIDY_AFTER_MS);
    });
    clearTimeout(timer);
    return woken || segment.entries === undefined || segment.confirmed < segment.entries.length;
  }

  /** Undefined, and the segment gone, when its file cannot be read. */
  async #entriesOf(segment: Segment): Promise<SpoolEntry[] | undefined> {
    if (segment.entries) return segment.entries;
    try {
      const entries = await segment.load(this.#warn);
      if (segment.adopted) {
        this.waitingBytes -= segment.fileBytes;
        this.waitingEvents += entries.length;
        for (const entry of entries) this.waitingBytes += entryBytes(entry);
      }
      return entries;
    } catch (error) {
      this.#warn(`The spool file ${segment.path} cannot be read (${String(error)}); it is left where it is.`);
      this.#segments = this.#segments.filter((s) => s !== segment);
      this.waitingBytes -= segment.adopted ? segment.fileBytes : segment.heldBytes;
      return undefined;
    }
  }

  /** Settles when the log has the batch, or has refused parts of it, or the spool is being closed. */
  async #append(batch: readonly SpoolEntry[]): Promise<void> {
    let rest = batch;
    let away = false;
    while (rest.length > 0 && !this.#stopping.signal.aborted) {
      const { waiting, refused } = await appendGrouped(this.#appends, rest);
      if (refused.length > 0) this.#setAside(refused);
      rest = waiting;
      if (rest.length === 0) break;
      if (!away) this.#warn('The event log does not take call events; they wait in the spool.');
      away = true;
      await pause(this.#backOff.next(), this.#stopping.signal);
    }
    if (rest.length > 0) return;
    this.#backOff.reset();
    if (away) this.#warn('The event log takes call events again.');
  }

  /** What the log will never take must not hold up what comes after it. */
  #setAside(refused: readonly { entry: SpoolEntry; why: string }[]): void {
    const file = join(this.#dir, `refused-${this.#now()}-${process.pid}-${this.#number}.spool.aside`);
    try {
      writeFileSync(file, formatEntries(refused.map((r) => r.entry)), { flag: 'a', mode: 0o600 });
    } catch {
      // Counted as lost below all the same.
    }
    this.#lose(refused.length, `${refused[0]?.why ?? 'The event log refused events.'} Kept in ${file}.`);
  }

  #lose(events: number, reason: string): void {
    this.lost += events;
    this.#unsaid = { events: this.#unsaid.events + events, reason };
    this.#soon();
  }

  #sayLost(): void {
    const { events, reason } = this.#unsaid;
    if (events === 0) return;
    this.#unsaid = { events: 0, reason: '' };
    try {
      this.#onLost({ events, total: this.lost, reason });
    } catch (error) {
      this.#warn(`Telling of a loss failed: ${String(error)}`);
    }
  }
}
