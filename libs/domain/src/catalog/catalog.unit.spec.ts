import { describe, expect, it } from 'vitest';
import type { CatalogEvent, FoundModel } from '../events/catalog-events.js';
import { modelKey, workerId } from '../ids.js';
import { LogOf } from '../testing/given.js';
import { evolveCatalog, initialCatalog, resolveModel } from './catalog.js';

const model = (key: string, aliases: string[] = []): FoundModel => ({
  modelKey: modelKey(key),
  aliases,
  root: 'models',
  path: key,
  kind: 'chat',
  framework: 'gguf',
  artifacts: [],
});

describe('the name in a call', () => {
  const models = [
    model('quay/Llama-8B'),
    model('pier/llama-8b'),
    model('quay/embed', ['nomic:latest']),
    model('tiny'),
  ];
  const key = (name: string) => resolveModel(models, name)?.modelKey;

  it('resolves by key, by alias, by short name, in any case', () => {
    expect(['tiny', 'TINY', 'quay/embed', 'Nomic:latest', 'embed', 'PIER/llama-8b'].map(key)).toEqual([
      'tiny',
      'tiny',
      'quay/embed',
      'quay/embed',
      'quay/embed',
      'pier/llama-8b',
    ]);
  });

  it('prefers the exact key over everything else, and never guesses between two', () => {
    expect(key('pier/llama-8b')).toBe('pier/llama-8b');
    expect(key('llama-8b')).toBeUndefined();
  });
});

describe('the fold of a catalog', () => {
  it('keeps what was found last and forgets what is gone', () => {
    const log = new LogOf<CatalogEvent>('catalog-w')
      .add({ type: 'ModelFound', data: model('a') })
      .add({ type: 'ModelFound', data: model('b') })
      .add({ type: 'ModelChanged', data: model('a', ['x']) })
      .add({ type: 'ModelGone', data: { modelKey: modelKey('b'), path: 'b' } });
    const state = log.recorded.reduce(evolveCatalog, initialCatalog(workerId('w')));
    expect([...state.models.keys()]).toEqual(['a']);
    expect(state.models.get(modelKey('a'))?.aliases).toEqual(['x']);
  });
});
