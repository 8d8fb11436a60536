import { pino } from 'pino';
import { expect, it } from 'vitest';
import { SAMPLES } from '#events/testing/samples.js';
import { logCall } from './access-log.js';

it('writes one line for a call, with what came of it and how long it took', () => {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  logCall(pino({ level: 'info' }, stream), '/v1/chat/completions', SAMPLES.CallFinished);
  logCall(pino({ level: 'error' }, stream), '/v1/chat/completions', SAMPLES.CallFinished);
  expect(lines).toHaveLength(1);
  const { callId, modelKey, outcome, stamps } = SAMPLES.CallFinished;
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    msg: 'call',
    call: callId,
    endpoint: '/v1/chat/completions',
    model: modelKey,
    outcome,
    totalMs: Date.parse(stamps.finishedAt) - Date.parse(stamps.receivedAt),
  });
});
