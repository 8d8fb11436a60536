import { badRequest } from './failure.js';
import type { Json } from './requests.js';

/** What would change the shape of an answer and cannot be turned into a grammar. */
const REFUSED = ['not', 'if', 'then', 'else', 'patternProperties', 'dependentSchemas', 'contains'] as const;
const FORMATS = new Set(['date-time', 'time', 'date']);
const BASIC = ['string', 'number', 'boolean', 'null'] as const;
const ROOT = '~root';

/** Any JSON, in the words of the library. */
const ANY: Json = {
  oneOf: [
    ...BASIC.map((type) => ({ type })),
    { type: 'object', additionalProperties: true },
    { type: 'array' },
  ],
};

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * A JSON schema as the library's grammars take it. Every property is given, as in OpenAI's strict mode. Bounds of numbers
 * and patterns of texts are hints that no grammar holds; they are left out.
 * @param field that the schema came in, for the refusal
 * @throws RequestError when a part of it cannot be held and would change the shape.
 */
export function grammarSchema(schema: unknown, field: string): Json {
  const root = isObject(schema) ? schema : {};
  const given = { ...asDefinitions(root['definitions']), ...asDefinitions(root['$defs']) };
  const walk = new Walk(field);
  const body = walk.of(schema, 'schema');
  const definitions = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, walk.of(value, `$defs.${name}`)]),
  );
  if (walk.refersToRoot) definitions[ROOT] = body;
  for (const name of walk.referred) {
    if (definitions[name] === undefined)
      throw badRequest(`"${field}" refers to "${name}", which it does not define.`, field);
  }
  return Object.keys(definitions).length === 0 ? body : { ...body, $defs: definitions };
}

const asDefinitions = (value: unknown): Json => (isObject(value) ? value : {});

class Walk {
  refersToRoot = false;
  readonly referred = new Set<string>();

  constructor(private readonly field: string) {}

  of(value: unknown, where: string): Json {
    if (value === true) return ANY;
    if (!isObject(value)) throw this.#no(where, 'is no schema');
    for (const name of REFUSED) if (value[name] !== undefined) throw this.#no(where, `uses "${name}"`);
    const { $ref: reference, allOf, type } = value;
    if (reference !== undefined) return this.#reference(reference, where);
    const alternatives = value['anyOf'] ?? value['oneOf'];
    if (Array.isArray(alternatives)) {
      return { oneOf: alternatives.map((each, at) => this.of(each, `${where}.anyOf[${at}]`)) };
    }
    if (Array.isArray(allOf)) {
      if (allOf.length !== 1) throw this.#no(where, 'joins several schemas with "allOf"');
      return this.of(allOf[0], `${where}.allOf[0]`);
    }
    if (value['const'] !== undefined) return { const: value['const'] };
    if (Array.isArray(value['enum'])) return { enum: value['enum'] as unknown[] };
    if (Array.isArray(type)) {
      const each = type.map((one: unknown) => this.of({ ...value, type: one }, where));
      return each.length === 1 && each[0] ? each[0] : { oneOf: each };
    }
    return this.#typed(value, type ?? (value['properties'] === undefined ? undefined : 'object'), where);
  }

  #typed(value: Json, type: unknown, where: string): Json {
    switch (type) {
      case 'object':
        return this.#object(value, where);
      case 'array':
        return this.#array(value, where);
      case 'string': {
        const { format, minLength, maxLength } = value;
        if (typeof format === 'string' && FORMATS.has(format)) return { type: 'string', format };
        return {
          type: 'string',
          ...(typeof minLength === 'number' ? { minLength } : {}),
          ...(typeof maxLength === 'number' ? { maxLength } : {}),
        };
      }
      case 'number':
      case 'integer':
      case 'boolean':
      case 'null':
        return { type };
      case undefined:
        return ANY;
      default:
        throw this.#no(where, 'has a "type" that JSON does not know');
    }
  }

  #object(value: Json, where: string): Json {
    const properties = Object.entries(isObject(value['properties']) ? value['properties'] : {}).map(
      ([name, each]) => [name, this.of(each, `${where}.${name}`)] as const,
    );
    const { additionalProperties: others } = value;
    const additional =
      others === undefined
        ? properties.length === 0
        : typeof others === 'boolean'
          ? others
          : this.of(others, where);
    return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: additional };
  }

  #array(value: Json, where: string): Json {
    const { items, prefixItems, minItems, maxItems } = value;
    return {
      type: 'array',
      ...(items === undefined || typeof items === 'boolean'
        ? {}
        : { items: this.of(items, `${where}.items`) }),
      ...(Array.isArray(prefixItems)
        ? { prefixItems: prefixItems.map((each, at) => this.of(each, `${where}.prefixItems[${at}]`)) }
        : {}),
      ...(typeof minItems === 'number' ? { minItems } : {}),
      ...(typeof maxItems === 'number' ? { maxItems } : {}),
    };
  }

  #reference(reference: unknown, where: string): Json {
    if (reference === '#') {
      this.refersToRoot = true;
      return { $ref: `#/$defs/${ROOT}` };
    }
    const name =
      typeof reference === 'string' ? /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(reference)?.[1] : undefined;
    if (name === undefined) throw this.#no(where, 'refers to something outside of its definitions');
    this.referred.add(name);
    return { $ref: `#/$defs/${name}` };
  }

  #no(where: string, why: string) {
    return badRequest(
      `The JSON schema cannot be held by this engine: ${where.slice(0, 200)} ${why}.`,
      this.field,
    );
  }
}
