import { expect, it } from 'vitest';
import { callId, modelKey } from '#domain/ids.js';
import type { Wanted } from './port.js';
import { QueuedCall } from './ticket.js';

it('a call has waited for a place as long as its own model was not loading', () => {
  const wanted = {
    callId: callId('c'),
    model: { modelKey: modelKey('m') },
    receivedAtMs: 0,
    background: false,
    promptTokens: 1,
  } as unknown as Wanted;
  const call = new QueuedCall(wanted, 1, 0, {});
  call.enter('queued', 'others are there', 1000);
  expect(call.waitedMs(5000)).toBe(5000);
  call.enter('loading', 'it loads', 6000);
  expect(call.waitedMs(56_000)).toBe(6000);
  call.enter('queued', 'its engine died', 60_000);
  expect(call.waitedMs(61_000)).toBe(7000);
});
