import { describe, expect, it } from 'vitest';
import { grammarSchema } from './schema-grammar.js';

const of = (schema: unknown) => grammarSchema(schema, 'response_format');

describe('a JSON schema in the words of the grammars', () => {
  it('takes what schema libraries write: alternatives, nullable types, definitions under either name', () => {
    expect(
      of({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          name: { type: 'string', description: 'who', pattern: '^[a-z]+$' },
          age: { type: ['integer', 'null'], minimum: 0 },
          kind: { anyOf: [{ const: 'a' }, { enum: ['b', 'c'] }] },
          more: { $ref: '#/definitions/more' },
        },
        required: ['name'],
        additionalProperties: false,
        definitions: { more: { type: 'array', items: { type: 'number' }, maxItems: 3 } },
      }),
    ).toEqual({
      type: 'object',
      properties: {
        name: { type: 'string' },
        age: { oneOf: [{ type: 'integer' }, { type: 'null' }] },
        kind: { oneOf: [{ const: 'a' }, { enum: ['b', 'c'] }] },
        more: { $ref: '#/$defs/more' },
      },
      additionalProperties: false,
      $defs: { more: { type: 'array', items: { type: 'number' }, maxItems: 3 } },
    });
  });

  it('lets an object without properties hold anything, and a schema without a type be anything', () => {
    expect(of({ type: 'object' })).toMatchObject({ additionalProperties: true });
    expect(of({})).toHaveProperty('oneOf');
  });

  it('lets a schema refer to itself', () => {
    expect(of({ type: 'object', properties: { child: { $ref: '#' } } })).toHaveProperty('$defs.~root');
  });

  it.each([
    [{ not: { type: 'string' } }, '"not"'],
    [{ allOf: [{}, {}] }, 'allOf'],
    [{ type: 'object', properties: { a: { $ref: 'other.json' } } }, 'schema.a'],
    [{ $ref: '#/$defs/none' }, 'does not define'],
    [{ type: 'text' }, '"type"'],
    ['string', 'no schema'],
  ])('refuses %j rather than leave it out', (schema, words) => {
    expect(() => of(schema)).toThrow(words);
  });
});
