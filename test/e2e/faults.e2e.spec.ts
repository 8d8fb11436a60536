import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, DataOf, BerthEventType, Recorded } from '#domain/events/index.js';
import { damage, expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { expectInvariants, openLogOf, readWholeLog } from '../support/log.js';
import {
  processes,
  processesOf,
  removeFolder,
  startStack,
  tempFolder,
  writeModels,
  type Stack,
} from '../support/stack.js';
import { waitFor } from '../support/wait.js';

describe('bad input and faults', () => {
  let stack: Stack;

  beforeAll(async () => {
    const home = tempFolder();
    await writeModels(home, {
      'quay/a': 'chat-a',
      'quay/b': 'chat-b',
      'quay/endless': 'endless',
      'quay/embed': 'embed',
      'quay/moe': 'moe',
      'quay/wide': { preset: 'big', sizeMb: 20 },
      'quay/cut': 'chat-a',
      'quay/garbage': 'chat-a',
      'quay/aborts': 'chat-a',
    });
    await damage(join(home, 'models/quay/aborts/aborts-F16.gguf'), 'aborts');
    await damage(join(home, 'models/quay/cut/cut-F16.gguf'), 'truncated');
    await damage(join(home, 'models/quay/garbage/garbage-F16.gguf'), 'bad-magic');
    stack = await startStack({ home, env: { BERTH_ENGINE_SILENCE: '3' } });
  });
  afterAll(async () => {
    await stack.stop();
    removeFolder(stack.home);
  });

  const events = async (): Promise<readonly Recorded<BerthEvent>[]> => {
    const log = openLogOf(stack.home);
    try {
      return await readWholeLog(log);
    } finally {
      await log.close();
    }
  };
  const of = <T extends BerthEventType>(all: readonly Recorded<BerthEvent>[], type: T): DataOf<T>[] =>
    all.flatMap((e) => (e.event.type === type ? [e.event.data as DataOf<T>] : []));
  const says = async (model: string) => {
    const response = await stack.chat(model);
    const body = (await response.json()) as { choices?: { message: { content: string } }[] };
    return [response.status, body.choices?.[0]?.message.content];
  };
  const stream = (model: string) => stack.chat(model, 'go on', { stream: true, max_tokens: 4000 });
  /** Reads a stream to its end, however it ends. */
  const readAll = async (response: Response): Promise<{ text: string; broken: boolean }> => {
    let text = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body!) text += decoder.decode(chunk as Uint8Array, { stream: true });
      return { text, broken: false };
    } catch {
      return { text, broken: true };
    }
  };

  it('names the nearest models for one that it does not have', async () => {
    const response = await stack.chat('quay/emded');
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('model_not_found');
    expect(error.message).toContain('quay/embed');
  });

  it('refuses malformed JSON and a missing model with 400', async () => {
    for (const body of ['{"model": "quay/a", ', 'null', '{"messages": []}', '{"model": 7}']) {
      const response = await fetch(`${stack.url}/v1/chat/completions`, { method: 'POST', body });
      expect([body, response.status]).toEqual([body, 400]);
      expect(await response.json()).toHaveProperty('error.message');
    }
  });

  it('lists a damaged file as broken, refuses it with words, and serves the others', async () => {
    const { data } = (await (await fetch(`${stack.url}/v1/models`)).json()) as {
      data: { id: string; berth: { artifacts: { label: string; broken?: string }[] } }[];
    };
    for (const id of ['quay/cut', 'quay/garbage']) {
      const listed = data.find((m) => m.id === id);
      expect([id, listed?.berth.artifacts[0]?.broken !== undefined]).toEqual([id, true]);
      const response = await stack.chat(id);
      expect([id, response.status]).toEqual([id, 422]);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe('bad_artifact');
      expect(error.message.length).toBeGreaterThan(20);
    }
    // Its header is sound; llama.cpp ends its process over it. Only that one ends, and its words are passed on.
    const aborted = await stack.chat('quay/aborts');
    expect(aborted.status).toBe(422);
    const { error } = (await aborted.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('bad_artifact');
    expect(error.message).toMatch(/GGML_ASSERT/);
    expect(await says('quay/a')).toEqual([200, expectedText('chat-a').text]);
    expect(await says('quay/moe')).toEqual([200, expectedText('moe').text]);
  });

  it('places a call again when its prompt is too long for the loaded context and not for the model', async () => {
    expect((await says('quay/wide'))[0]).toBe(200);
    // Nine thousand tokens of one byte each: at four bytes a token they are taken for a quarter of that.
    const response = await stack.chat('quay/wide', 'a'.repeat(9000));
    expect(response.status).toBe(200);
    const body = (await response.json()) as { usage: { prompt_tokens: number } };
    expect(body.usage.prompt_tokens).toBeGreaterThan(8192);
    const contexts = of(await events(), 'ResidentReady').map((e) => e.measured.contextTokens);
    expect(Math.max(...contexts)).toBeGreaterThan(9000);
    // What no context of the model holds is refused in the words that clients know.
    const tooLong = await stack.chat('quay/wide', 'a'.repeat(40_000));
    expect(tooLong.status).toBe(400);
    const { error } = (await tooLong.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('context_length_exceeded');
    expect(error.message).toMatch(/maximum context length is \d+ tokens/);
  });

  it('embeds', async () => {
    const response = await fetch(`${stack.url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'quay/embed', input: ['one', 'two'] }),
    });
    expect(response.status).toBe(200);
    const body = (await response.json()) as { data: { embedding: number[] }[] };
    expect(body.data.map((d) => d.embedding.length)).toEqual([64, 64]);
  });

  it('ends a stream with an error event when its engine is killed, records it, and serves the model again', async () => {
    expect((await stack.chat('quay/endless', 'go on', { max_tokens: 2 })).status).toBe(200);
    const resident = of(await events(), 'LoadStarted').findLast((e) => e.modelKey === 'quay/endless')!;
    const response = await stream('quay/endless');
    const reader = response.body!.getReader();
    await reader.read();
    reader.releaseLock();
    process.kill(resident.pid, 'SIGKILL');
    const { text, broken } = await readAll(response);
    expect(text.slice(-500)).toContain('"error"');
    expect(text.slice(-500)).toContain('engine_failed');
    expect(text.includes('[DONE]')).toBe(false);
    expect(broken).toBe(true);
    const crashed = await waitFor('the crash is in the log', 10_000, async () =>
      of(await events(), 'ResidentCrashed').find((e) => e.residentId === resident.residentId),
    );
    expect(crashed).toMatchObject({ signal: 'SIGKILL', during: 'call' });
    const call = await waitFor('the call has its end', 10_000, async () =>
      of(await events(), 'CallFinished').find(
        (e) => e.residentId === resident.residentId && e.outcome === 'failed',
      ),
    );
    expect(call.code).toBe('engine_failed');
    const again = await stack.chat('quay/endless', 'go on', { max_tokens: 5 });
    expect(again.status).toBe(200);
  });

  it('stops an engine that stands still: its stream ends with an error event, a call without a head gets its answer', async () => {
    expect((await stack.chat('quay/endless', 'go on', { max_tokens: 2 })).status).toBe(200);
    expect(await says('quay/b')).toEqual([200, expectedText('chat-b').text]);
    const started = of(await events(), 'LoadStarted');
    const [endless, other] = ['quay/endless', 'quay/b'].map((model) =>
      started.findLast((e) => e.modelKey === model)!,
    );
    const response = await stream('quay/endless');
    const reader = response.body!.getReader();
    await reader.read();
    reader.releaseLock();
    for (const { pid } of [endless!, other!]) process.kill(pid, 'SIGSTOP');
    const [{ text, broken }, said] = await Promise.all([readAll(response), says('quay/b')]);
    expect(text.slice(-500)).toContain('engine_failed');
    expect([text.includes('[DONE]'), broken]).toEqual([false, true]);
    expect(said).toEqual([200, expectedText('chat-b').text]);
    for (const { residentId } of [endless!, other!]) {
      const crashed = await waitFor('the crash is in the log', 10_000, async () =>
        of(await events(), 'ResidentCrashed').find((e) => e.residentId === residentId),
      );
      expect(crashed.unansweredSeconds).toBeGreaterThanOrEqual(3);
    }
    expect((await stack.chat('quay/endless', 'go on', { max_tokens: 2 })).status).toBe(200);
  });

  it('records a client that leaves as abandoned, and its slot is free at once', async () => {
    const leaving = new AbortController();
    const response = await fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'quay/endless',
        messages: [{ role: 'user', content: 'go' }],
        stream: true,
        max_tokens: 4000,
      }),
      signal: leaving.signal,
    });
    const id = response.headers.get('x-berth-call')!;
    await response.body!.getReader().read();
    leaving.abort();
    await waitFor('the call is recorded as abandoned', 10_000, async () =>
      of(await events(), 'CallFinished').find((e) => e.callId === id && e.outcome === 'abandoned'),
    );
    expect((await stack.chat('quay/endless', 'go on', { max_tokens: 3 })).status).toBe(200);
  });

  const running = async () => {
    const all = await events();
    const ended = new Set([
      ...of(all, 'ResidentEvicted').map((e) => e.residentId),
      ...of(all, 'ResidentCrashed').map((e) => e.residentId),
      ...of(all, 'ResidentFoundGone').map((e) => e.residentId),
      ...of(all, 'LoadFailed').map((e) => e.residentId),
    ]);
    return of(all, 'LoadStarted').filter((e) => !ended.has(e.residentId));
  };

  it('keeps engines over kill -9 of the agent: they are adopted, none is started twice, calls go on meanwhile', async () => {
    await says('quay/a');
    expect((await stack.chat('quay/endless', 'go on', { max_tokens: 2 })).status).toBe(200);
    const before = await running();
    const pid = stack.pidOf('agent');
    // An answer under way does not even notice.
    const answering = await stream('quay/endless');
    process.kill(pid, 'SIGKILL');
    expect(await says('quay/a')).toEqual([200, expectedText('chat-a').text]);
    const answer = await readAll(answering);
    expect([answer.broken, answer.text.slice(-20)]).toEqual([false, expect.stringContaining('[DONE]')]);
    const adopted = await waitFor('the new agent adopts what runs', 30_000, async () => {
      const all = of(await events(), 'ResidentAdopted').map((e) => e.residentId);
      return before.every((r) => all.includes(r.residentId)) ? all : undefined;
    });
    expect(adopted.length).toBeGreaterThanOrEqual(before.length);
    expect((await running()).map((r) => r.pid).sort()).toEqual(before.map((r) => r.pid).sort());
    // The new agent acts: a model that is not resident is loaded.
    expect(await says('quay/b')).toEqual([200, expectedText('chat-b').text]);
    const pids = new Set((await running()).map((r) => r.pid));
    const engines = processesOf(stack.home).filter(
      (p) => p.command.includes('built-in') && p.command.includes('child'),
    );
    expect(engines.filter((p) => !pids.has(p.pid))).toEqual([]);
  });

  it('finishes calls that a killed api left open, and serves residents at once', async () => {
    const open = await stream('quay/endless');
    const id = open.headers.get('x-berth-call')!;
    await open.body!.getReader().read();
    const before = await running();
    await waitFor('the call has begun in the log', 10_000, async () =>
      of(await events(), 'CallStarted').some((e) => e.callId === id),
    );
    process.kill(stack.pidOf('api'), 'SIGKILL');
    await waitFor('the new api answers', 30_000, async () =>
      fetch(`${stack.url}/health`).then(
        (r) => r.ok,
        () => false,
      ),
    );
    expect(await says('quay/a')).toEqual([200, expectedText('chat-a').text]);
    const ended = await waitFor('the open call has an end', 20_000, async () =>
      of(await events(), 'CallFinished').find((e) => e.callId === id),
    );
    expect(ended.outcome).toBe('abandoned');
    expect((await running()).map((r) => r.pid).sort()).toEqual(before.map((r) => r.pid).sort());
  });

  it('catches the views up after kill -9 of the projector, with nothing twice', async () => {
    process.kill(stack.pidOf('projector'), 'SIGKILL');
    expect((await says('quay/a'))[0]).toBe(200);
    const all = await events();
    const finished = of(all, 'CallFinished').map((e) => e.callId as string);
    const seen = await waitFor('the views have every call', 30_000, async () => {
      const ids: string[] = [];
      let after = '';
      do {
        const page = (await (await fetch(`${stack.url}/admin/calls?limit=100${after}`)).json()) as {
          items?: { callId: string }[];
          next?: string;
        };
        ids.push(...(page.items ?? []).map((i) => i.callId));
        after = page.next === undefined ? '' : `&after=${encodeURIComponent(page.next)}`;
      } while (after !== '');
      return finished.every((id) => ids.includes(id)) ? ids : undefined;
    });
    expect(new Set(seen).size).toBe(seen.length);
  });

  it('stops its children when the supervisor is killed, and starts cleanly again', async () => {
    process.kill(stack.process.pid!, 'SIGKILL');
    await waitFor(
      'every process of the stack ends by itself',
      40_000,
      () => processesOf(stack.home).length === 0,
    );
    const lock = processes().filter((p) => p.command.includes('postgres') && p.command.includes(stack.home));
    expect(lock).toEqual([]);
    stack = await startStack({ home: stack.home });
    expect(await says('quay/a')).toEqual([200, expectedText('chat-a').text]);
  });

  it('keeps secrets to itself: folders 0700, files 0600', () => {
    const connection = readFileSync(join(stack.home, 'event-node', 'connection'), 'utf8');
    expect(connection).toMatch(/^esdb:\/\//);
    const mode = (path: string) => (statSync(join(stack.home, path)).mode & 0o777).toString(8);
    for (const folder of ['.', 'event-node', 'secrets', 'engines', 'spool']) {
      expect([folder, mode(folder)]).toEqual([folder, '700']);
    }
    const files = ['event-node', 'secrets', 'engines'].flatMap((folder) =>
      readdirSync(join(stack.home, folder), { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(folder, entry.name)),
    );
    expect(files.length).toBeGreaterThan(5);
    expect(files.filter((file) => mode(file) !== '600')).toEqual([]);
    expect(stack.output()).not.toContain(connection.trim());
  });

  it('leaves a log in which every invariant holds', async () => {
    expect(await stack.stop()).toBe(0);
    await expectInvariants(stack.home);
  });
});
