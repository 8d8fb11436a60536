import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Evidence } from './config-evidence.js';
import { settle, type Shown } from './marker.js';

const presumed: Evidence = {
  kind: 'chat',
  certain: false,
  abilities: [],
  reasons: ['the header names llama'],
};
const certain: Evidence = { kind: 'embedding', certain: true, abilities: [], reasons: ['pooling 1'] };
const shown = (evidence: Evidence, over: Partial<Shown> = {}): Shown => ({
  evidence,
  hasTemplate: false,
  ...over,
});

describe('a marker', () => {
  it('is not needed: without one everything is derived from the files', () => {
    expect(settle(shown(certain), undefined, 'beside')).toEqual({
      kind: 'embedding',
      abilities: [],
      aliases: [],
      marker: { source: 'derived', reasons: ['pooling 1'] },
    });
  });

  it('adds what the disk cannot say', () => {
    const said = {
      kind: 'embedding',
      aliases: ['words'],
      trainedContextTokens: 2048,
      description: 'for search',
    };
    const settled = settle(shown(presumed), said, 'beside');
    expect(settled).toMatchObject({ kind: 'embedding', aliases: ['words'], trainedContextTokens: 2048 });
    expect(settled.marker).toMatchObject({ source: 'beside', description: 'for search' });
    expect(settled.marker.corrections).toBeUndefined();
    expect(settled.rederived).toBeUndefined();
  });

  it('adds tools where no template shows any, and none where one shows that there are none', () => {
    const said = { abilities: ['tools'] };
    expect(settle(shown(presumed), said, 'beside').abilities).toEqual(['tools']);
    const denied = settle(shown(presumed, { hasTemplate: true }), said, 'beside');
    expect(denied.abilities).toEqual([]);
    expect(denied.marker.corrections).toEqual([
      { fact: 'abilities', said: 'tools', found: 'none', reason: 'its chat template shows none' },
    ]);
  });

  it('is put right where the files deny it, with the reason', () => {
    const settled = settle(
      shown(certain, { trainedContextTokens: 512 }),
      { kind: 'chat', trainedContextTokens: 9 },
      'beside',
    );
    expect(settled).toMatchObject({ kind: 'embedding', trainedContextTokens: 512 });
    expect(settled.rederived).toMatchObject({
      kind: 'embedding',
      trainedContextTokens: 512,
      corrections: [
        { fact: 'kind', said: 'chat', found: 'embedding', reason: 'pooling 1' },
        { fact: 'trainedContextTokens', said: '9', found: '512' },
      ],
    });
  });

  it('stands once it was put right, whatever it said, and keeps the reason', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(presumed, certain),
        fc.boolean(),
        fc.dictionary(
          fc.constantFrom('kind', 'abilities', 'trainedContextTokens', 'aliases', 'description', 'more'),
          fc.oneof(fc.jsonValue(), fc.constantFrom('chat', 'embedding', 'tools', ['tools', 'vision'], 4096)),
        ),
        (evidence, hasTemplate, said) => {
          const first = settle(shown(evidence, { hasTemplate, trainedContextTokens: 512 }), said, 'beside');
          if (first.rederived === undefined) return;
          const written = JSON.parse(JSON.stringify(first.rederived)) as Record<string, unknown>;
          const again = settle(
            shown(evidence, { hasTemplate, trainedContextTokens: 512 }),
            written,
            'beside',
          );
          expect(again.rederived).toBeUndefined();
          expect(again.marker.corrections).toEqual(first.marker.corrections);
          expect(again).toMatchObject({
            kind: first.kind,
            abilities: first.abilities,
            aliases: first.aliases,
          });
        },
      ),
    );
  });
});
