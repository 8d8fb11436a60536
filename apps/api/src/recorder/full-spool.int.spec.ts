import { afterAll, beforeAll, expect, it } from 'vitest';
import { ScriptedEngine } from '../testing/scripted-engine.js';
import { eventually, type Stand, startStand } from '../testing/stand.js';

interface Loss {
  readonly events: number;
  readonly total: number;
  readonly reason: string;
}

let engine: ScriptedEngine;
let stand: Stand;
const said: Loss[] = [];

beforeAll(async () => {
  engine = await new ScriptedEngine().start();
  stand = await startStand({
    models: ['chat-a'],
    portOf: () => engine.port,
    spoolMaxBytes: 30_000,
    onLogLine: (line) => {
      if (line.includes('"msg":"call events were lost"')) said.push(JSON.parse(line) as Loss);
    },
  });
}, 120_000);
afterAll(async () => {
  await stand.stop();
  engine.die();
});

/** The id of a call that was answered. */
async function call(): Promise<string> {
  const answer = await fetch(`${stand.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'chat-a', messages: [{ role: 'user', content: 'hi' }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('x-berth-call') ?? '';
}

it(
  'serves residents when the log is away and the spool is full, says what is lost, and loses whole calls alone',
  { timeout: 120_000 },
  async () => {
    await call();
    await stand.node.kill9();
    const calls: string[] = [];
    for (let i = 0; i < 40; i++) calls.push(await call());
    // The last call's end is written a few milliseconds after its answer; of a lost call two events are lost.
    await eventually('the same loss in the metrics, in the log lines and in the health', async () => {
      const text = await (await fetch(`${stand.url}/metrics`)).text();
      const count = Number(/^berth_spool_events_lost (\d+)$/m.exec(text)?.[1]);
      const { degraded } = (await (await fetch(`${stand.url}/health`)).json()) as { degraded: string[] };
      const all = said.reduce((sum, { events }) => sum + events, 0);
      const told = degraded.join('\n').includes(`${count} call events were lost`);
      return count > 0 && count % 2 === 0 && said.at(-1)?.total === count && all === count && told
        ? count
        : undefined;
    });
    expect(said[0]?.reason).toMatch(/^The spool is full: \d+ KiB of 29 KiB wait for the event log\.$/);

    await stand.node.restart();
    const again: string[] = [];
    const last = await eventually('a call that is recorded again', async () => {
      again.push(await call());
      const recorded = new Set((await stand.callEvents('chat-a')).map(({ data }) => data.callId as string));
      return again.find((id) => recorded.has(id));
    });
    expect(await stand.finished('chat-a', last)).toMatchObject({ outcome: 'completed' });
    // When the end of one more is there, everything before it is.
    const end = await call();
    await stand.finished('chat-a', end);
    calls.push(...again, end);
    const events = (await stand.callEvents('chat-a')).map(({ data }) => data.callId as string);
    const kept = calls.filter((id) => events.includes(id));
    expect(kept.slice(0, 3)).toEqual(calls.slice(0, 3));
    expect(kept.length).toBeLessThan(calls.length);
    // Each start is followed by its end, in the order of the calls.
    expect(events.slice(2)).toEqual(kept.flatMap((id) => [id, id]));
  },
);
