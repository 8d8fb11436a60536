import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BerthEvent } from '#domain/events/index.js';
import type { TypedStream } from '../catalogue.js';
import type { EventLog } from '../event-log.js';
import { stateFromText, stateToText } from './state-text.js';

export interface SnapshotOptions {
  /** Made when it is not there. Whatever lies in it may be deleted at any time. */
  readonly folder: string;
  readonly warn?: (message: string) => void;
}

interface Header {
  readonly logId: string;
  readonly stream: string;
  readonly foldVersion: number;
  /** The last event that is folded in, by which the log is known again. */
  readonly revision: number;
  readonly eventId: string;
  /** Of the state's text. */
  readonly sha256: string;
}

export interface Folded<State> {
  readonly state: State;
  /** The last event that is folded in. */
  readonly last: { readonly revision: number; readonly eventId: string };
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * States of streams as they once were, in files: a cache, so that a long stream need not be folded from its first event.
 * A snapshot counts only for the same log, the same version of the fold, and when the event that it ends with still
 * stands where it stood. Anything else is passed over, and a damaged file is set aside and said.
 */
export class Snapshots {
  readonly #folder: string;
  readonly #warn: (message: string) => void;

  constructor(options: SnapshotOptions) {
    this.#folder = options.folder;
    this.#warn = options.warn ?? (() => undefined);
  }

  /** @returns undefined when there is none that fits. @throws when the log does not answer. */
  async read<S, E extends BerthEvent>(
    log: EventLog,
    stream: TypedStream<S, E>,
  ): Promise<Folded<S> | undefined> {
    const path = this.#pathOf(stream.name);
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const found = parse(text);
    if (!found) {
      await rename(path, `${path}.damaged`).catch(() => undefined);
      this.#warn(
        `The snapshot of ${stream.name} is damaged: it was set aside as ${path}.damaged, and the stream is folded from its first event.`,
      );
      return undefined;
    }
    const { header, state } = found;
    if (header.stream !== stream.name || header.foldVersion !== stream.fold.version) return undefined;
    if (header.logId !== (await log.identity())) return undefined;
    for await (const { id } of log.readForwards(stream.name, {
      fromRevision: header.revision,
      maxCount: 1,
    })) {
      // Its own fold wrote the state, of this version: that is what the version stands for.
      if (id === header.eventId) return { state: state as S, last: header };
    }
    return undefined;
  }

  /** A snapshot that cannot be written is only said: nothing depends on it. */
  async write<S, E extends BerthEvent>(
    log: EventLog,
    stream: TypedStream<S, E>,
    { state, last }: Folded<S>,
  ): Promise<void> {
    const path = this.#pathOf(stream.name);
    const text = stateToText(state);
    const header: Header = {
      logId: await log.identity(),
      stream: stream.name,
      foldVersion: stream.fold.version,
      revision: last.revision,
      eventId: last.eventId,
      sha256: digestOf(text),
    };
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const making = `${path}.${process.pid}`;
      await writeFile(making, `${JSON.stringify(header)}\n${text}`, { mode: 0o600 });
      await rename(making, path);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#warn(
        `The snapshot of ${stream.name} could not be written: ${why}. The stream is folded in full next time.`,
      );
    }
  }

  #pathOf(stream: string): string {
    return join(this.#folder, `${digestOf(stream).slice(0, 32)}.json`);
  }
}

function parse(text: string): { header: Header; state: unknown } | undefined {
  const newline = text.indexOf('\n');
  try {
    const header = JSON.parse(text.slice(0, newline)) as Header;
    const body = text.slice(newline + 1);
    return header.sha256 === digestOf(body) ? { header, state: stateFromText(body) } : undefined;
  } catch {
    return undefined;
  }
}

/** Fewer new events than this are folded again faster than a snapshot is worth. */
const WORTH_EVENTS = 200;

/** Folds a stream, from its snapshot when one fits, and keeps a new one when many events have come since. */
export async function foldStream<S, E extends BerthEvent>(
  log: EventLog,
  stream: TypedStream<S, E>,
  snapshots?: Snapshots,
): Promise<Folded<S> | { readonly state: S; readonly last?: undefined }> {
  const known = await snapshots?.read(log, stream);
  let state = known?.state ?? stream.fold.initial();
  let last = known?.last;
  let events = 0;
  const from = known ? { fromRevision: known.last.revision + 1 } : {};
  for await (const recorded of log.readForwards<E>(stream.name, from)) {
    state = stream.fold.evolve(state, recorded);
    last = { revision: recorded.revision, eventId: recorded.id };
    events += 1;
  }
  if (!last) return { state };
  if (snapshots && events >= WORTH_EVENTS) await snapshots.write(log, stream, { state, last });
  return { state, last };
}
