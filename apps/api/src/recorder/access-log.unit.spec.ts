import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { berthError } from '#domain/errors.js';
import { modelKey } from '#domain/ids.js';
import { SAMPLES } from '#events/testing/samples.js';
import { AccessLog } from './access-log.js';

const CHAT = '/v1/chat/completions';
const { callId, outcome } = SAMPLES.CallFinished;
const TIMES = { totalMs: 1234, firstByteMs: 56 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function logged(level = 'info') {
  const writes: string[] = [];
  const log = new AccessLog(pino({ name: 'api', level }, { write: (text) => void writes.push(text) }));
  return { log, writes };
}

it('writes one line for a call, with what came of it and how long it took', () => {
  const { log, writes } = logged();
  const odd = modelKey('a "b"\\c\u2028d');
  log.ended(CHAT, { ...SAMPLES.CallFinished, modelKey: odd, code: 'engine_failed' }, TIMES);
  log.flush();
  expect(JSON.parse(writes.join(''))).toMatchObject({
    level: 30,
    name: 'api',
    msg: 'call',
    call: callId,
    endpoint: CHAT,
    model: odd,
    worker: SAMPLES.CallFinished.workerId,
    code: 'engine_failed',
    tokens: SAMPLES.CallFinished.tokens,
    bytesOut: SAMPLES.CallFinished.bytesOut,
    outcome,
    ...TIMES,
  });
});

it('writes what comes together at once, a tenth of a second later', () => {
  const { log, writes } = logged();
  for (let n = 0; n < 3; n += 1) log.ended(CHAT, SAMPLES.CallFinished, TIMES);
  vi.advanceTimersByTime(99);
  expect(writes).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(writes).toHaveLength(1);
  expect(
    writes[0]!
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg),
  ).toEqual(['call', 'call', 'call']);
});

it('keeps no more than some kilobytes back', () => {
  const { log, writes } = logged();
  for (let n = 0; n < 100; n += 1) log.ended(CHAT, SAMPLES.CallFinished, TIMES);
  expect(writes.length).toBeGreaterThan(0);
});

it('says which calls were refused before they were read, and nothing above its level', () => {
  const refusal = {
    callId,
    endpoint: CHAT,
    error: berthError('body_too_large', 'too large'),
    receivedAtMs: 1000,
    nowMs: 1007,
  };
  const quiet = logged('warn');
  quiet.log.ended(CHAT, SAMPLES.CallFinished, TIMES);
  quiet.log.refused(refusal);
  quiet.log.flush();
  expect(quiet.writes).toEqual([]);
  const { log, writes } = logged();
  log.refused(refusal);
  log.flush();
  expect(JSON.parse(writes.join(''))).toMatchObject({
    call: callId,
    outcome: 'refused',
    status: 413,
    code: 'body_too_large',
    totalMs: 7,
  });
});
