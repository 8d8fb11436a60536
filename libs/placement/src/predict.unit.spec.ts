import { expect, it } from 'vitest';
import { classKey, placementClassOf } from '#domain/placement-terms.js';
import { ratesOfClass } from './predict.js';
import { contract, history } from './testing/factories.js';

it('predicts a class from the medians of what it served itself, and answers as long as the model’s', () => {
  const klass = placementClassOf('F16', contract());
  const serving = new Map([
    [
      classKey(klass),
      [
        { tokensHeld: 10, decodeMsPerToken: 30 },
        { tokensHeld: 10, promptMsPerToken: 2, decodeMsPerToken: 10 },
        { tokensHeld: 10, promptMsPerToken: 4, decodeMsPerToken: 20 },
      ],
    ],
  ]);
  const pair = history('a', { serving });
  expect(ratesOfClass(pair, klass, { decodeMsPerToken: 99, outputTokens: 200 })).toEqual({
    promptMsPerToken: 3,
    decodeMsPerToken: 20,
    outputTokens: 200,
  });
  expect(ratesOfClass(pair, { ...klass, gpuLayers: 9 }, { decodeMsPerToken: 99 })).toBeUndefined();
});
