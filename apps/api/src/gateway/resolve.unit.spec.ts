import { expect, it } from 'vitest';
import { modelKey, workerId } from '#domain/ids.js';
import { model } from '../../../../libs/placement/src/testing/factories.js';
import { CHAT } from './engine-routes.js';
import { ENDPOINTS } from './endpoints.js';
import { Resolver } from './resolve.js';

const key = modelKey('quay/a');
const endpoint = ENDPOINTS.get(CHAT.path)!;
const resolver = new Resolver(
  () => new Map([[key, { model: model(key), workers: [workerId('w1'), workerId('w2')], foundAtMs: 0 }]]),
  { version: 0, levels: () => ({}) },
  (id) => ({ w1: 'attic', w2: 'cellar' })[id as string],
);
const resolve = (worker: unknown) =>
  resolver.resolve({ modelName: key, berth: { worker } }, endpoint, { rights: 'use' });

it.each(['w2', 'cellar'])('keeps a call to the worker that it names by id or name: %s', (worker) => {
  expect(resolve(worker)).toMatchObject({ ok: true, value: { worker: 'w2' } });
});

it('says where a model is when the named worker does not have it', () => {
  expect(resolve('barn')).toMatchObject({
    ok: false,
    error: {
      code: 'invalid_request',
      message: 'No worker "barn" has "quay/a". It is on: attic, cellar.',
      param: 'berth.worker',
    },
  });
  expect(resolve(7)).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
});
