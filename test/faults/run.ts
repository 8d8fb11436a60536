import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { workerId } from '#domain/ids.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import { checkInvariants, type Violation } from '#events/check/invariants.js';
import { streams } from '#events/streams.js';
import type { Reproduced } from '#placement/what-if/reproduce.js';
import { reproduceLog } from '#placement/what-if/reproduce-log.js';
import { openLogOf, readWholeLog, withLogAtRest } from '../support/log-at-rest.js';
import { roomDifferences } from '../support/measured-room.js';
import { removeFolder, type StackOptions, startStack } from '../support/stack.js';
import {
  Deck,
  Draw,
  FAULT_KINDS,
  type FaultKind,
  FAULTS,
  LARGE,
  LARGE_MB,
  type Mixed,
  processesOfHome,
  RAM_MAX,
  SMALL,
  textsOf,
} from './mix.js';

export interface MixOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly say: (line: string) => void;
}

export interface MixReport {
  readonly seed: number;
  /** How often each kind was done; 0 for one that never could be. */
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** Calls by how they ended: `answered`, `left`, `broken`, or the code of their error. */
  readonly calls: Readonly<Record<string, number>>;
  /** What must not be; empty when all is well. */
  readonly wrong: readonly string[];
  readonly violations: readonly Violation[];
  /** The decisions of its log made again, from the log alone. */
  readonly reproduced: Reproduced;
}

const CLIENTS = 4;
/** Longer than any wait that a call may have here: what takes longer hangs. */
const CALL_WITHIN_MS = 150_000;
const RECOVER_WITHIN_MS = 240_000;
const GONE_WITHIN_MS = 30_000;
const ROOM_WITHIN_MS = 30_000;
/** On a slow machine it goes on for so long, until each kind of fault was done once. */
const AT_MOST_MINUTES_MORE = 4;

/**
 * Runs a whole Berth under calls, and hurts it by a seeded draw for so many minutes, and until each kind of fault was done.
 * Then it must answer for every model again, have the room that is measured, end in order, leave no process, and its log
 * must keep every invariant.
 */
export async function runMix({ seed, minutes, say }: MixOptions): Promise<MixReport> {
  const draw = new Draw(seed);
  const models: NonNullable<StackOptions['models']> = {
    ...Object.fromEntries(SMALL.map((model) => [model, 'chat-a' as const])),
    ...Object.fromEntries(
      Object.entries(LARGE).map(([model, of]) => [
        model,
        { preset: 'big' as const, sizeMb: LARGE_MB, seed: of },
      ]),
    ),
  };
  const stack = await startStack({ ramMax: RAM_MAX, models });
  const mixed: Mixed = { stack, draw, presets: new Map(SMALL.map((model) => [model, 'chat-a'])) };
  const deck = new Deck(draw);
  const faults = Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  const calls: Record<string, number> = {};
  const wrong: string[] = [];
  const count = (of: Record<string, number>, what: string) => (of[what] = (of[what] ?? 0) + 1);
  let violations: readonly Violation[] = [];
  let reproduced: Reproduced = { decisions: 0, identical: 0, differences: [] };
  try {
    const until = performance.now() + minutes * 60_000;
    const atMost = until + AT_MOST_MINUTES_MORE * 60_000;
    const going = () => {
      const now = performance.now();
      return now < until || (now < atMost && FAULT_KINDS.some((kind) => faults[kind] === 0));
    };
    const hurt = async () => {
      const kind = deck.next();
      if (!(await FAULTS[kind].fault(mixed))) {
        deck.putBack(kind);
        return;
      }
      faults[kind] += 1;
      say(kind);
    };
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      // Clients draw by themselves, so that their pace does not change which faults are drawn.
      const own = new Draw(seed * 31 + client + 1);
      while (going()) {
        const model = own.of(Object.keys(models)) ?? SMALL[0];
        count(calls, await callOnce(mixed, own, model, wrong));
        await rest(own.between(20, 400));
      }
    });
    while (going()) {
      // Bursts, and between them time to come back: on a slow machine one that is hurt all the time serves nobody.
      const burst = 1 + Math.floor(draw.next() * 3);
      for (let i = 0; i < burst && going(); i += 1) {
        await rest(draw.between(300, 2000));
        await hurt();
      }
      const answered = calls['answered'] ?? 0;
      while (going() && (calls['answered'] ?? 0) < answered + CLIENTS) await rest(50);
    }
    await Promise.all(clients);
    for (const model of Object.keys(models)) {
      if (await recovers(mixed, model, wrong)) count(calls, 'answered');
    }
    wrong.push(...(await roomWrong(stack.home)));
  } finally {
    const code = await stack.stop();
    if (code !== 0) wrong.push(`berth up ended with ${String(code)}`);
    const gone = performance.now() + GONE_WITHIN_MS;
    while (processesOfHome(stack.home).length > 0 && performance.now() < gone) await rest(100);
    const left = processesOfHome(stack.home);
    if (left.length > 0) wrong.push(`processes were left behind: ${left.join(', ')}`);
    await withLogAtRest(stack.home, async (log) => {
      violations = await checkInvariants(log, { atRest: true });
      reproduced = reproduceLog(await readWholeLog(log));
    });
    if (wrong.length === 0 && violations.length === 0) removeFolder(stack.home);
    else say(`its home is kept: ${stack.home}`);
  }
  say(`done: ${FAULT_KINDS.map((kind) => `${kind} ${faults[kind]}`).join(', ')}`);
  return { seed, faults, calls, wrong, violations, reproduced };
}

/** What of the room that the log gives is not as measured, once nothing is under way. */
async function roomWrong(home: string): Promise<readonly string[]> {
  const worker = workerId(readFileSync(join(home, 'worker-id'), 'utf8').trim());
  const log = openLogOf(home);
  const until = performance.now() + ROOM_WITHIN_MS;
  try {
    for (;;) {
      const state = await log.fold(streams.worker(worker), initialWorker(worker), evolveWorker);
      const differences = roomDifferences(state, home);
      if (differences.length === 0 || performance.now() > until) return differences;
      await rest(200);
    }
  } finally {
    await log.close();
  }
}

/** One call of a drawn kind. @returns how it ended */
async function callOnce({ stack }: Mixed, draw: Draw, model: string, wrong: string[]): Promise<string> {
  const leaves = draw.next() < 0.1;
  const leaving = new AbortController();
  const timer = setTimeout(() => leaving.abort(), leaves ? draw.between(5, 800) : CALL_WITHIN_MS);
  try {
    const response = await fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
      signal: leaving.signal,
    });
    const body = (await response.json()) as {
      choices?: { message: { content: string } }[];
      error?: { code?: string };
    };
    if (!response.ok) return body.error?.code ?? `status ${response.status} without a code`;
    const text = body.choices?.[0]?.message.content ?? '';
    if (!textsOf(model).includes(text)) wrong.push(`${model} answered ${JSON.stringify(text.slice(0, 200))}`);
    return 'answered';
  } catch {
    if (leaving.signal.aborted && !leaves)
      wrong.push(`a call to ${model} hung for ${CALL_WITHIN_MS / 1000} s`);
    return leaves ? 'left' : 'broken';
  } finally {
    clearTimeout(timer);
  }
}

/** Every model must answer again, and with what its file holds now. */
async function recovers({ stack, presets }: Mixed, model: string, wrong: string[]): Promise<boolean> {
  const [first = '', second = first] = textsOf(model);
  const preset = [...presets].find(([name]) => name === model)?.[1];
  const expected = preset === 'chat-b' ? second : first;
  const until = performance.now() + RECOVER_WITHIN_MS;
  let said = 'nothing';
  while (performance.now() < until) {
    try {
      const response = await stack.chat(model);
      const body = (await response.json()) as { choices?: { message: { content: string } }[] };
      said = body.choices?.[0]?.message.content ?? JSON.stringify(body).slice(0, 300);
      if (response.ok && said === expected) return true;
    } catch (error) {
      said = String(error);
    }
    await rest(500);
  }
  wrong.push(`${model} did not come back within ${RECOVER_WITHIN_MS / 1000} s; it said ${said}`);
  return false;
}

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
