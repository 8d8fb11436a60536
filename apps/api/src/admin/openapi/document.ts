import { RequestMethod, type Type } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { ERROR_CODES } from '#domain/errors.js';
import { ROUTES } from './descriptions.js';

/** The part of OpenAPI 3 that is written here. */
export interface ApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}
interface Operation {
  summary: string;
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: unknown;
  responses: Record<string, unknown>;
}
interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: object;
}

/** Nest's own names for what decorators leave on a method. */
const ROUTE_ARGUMENTS = '__routeArguments__';
const BODY = 3;
const QUERY = 4;
const PARAM = 5;
const HEADERS = 6;

interface Route {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly controller: Type;
  readonly handler: string;
  readonly status: number;
}

/** @throws Error that lists routes without a description and descriptions without a route. */
export function documentOf(controllers: readonly Type[], version: string): ApiDocument {
  const routes = controllers.flatMap(routesOf).sort((a, b) => (a.name < b.name ? -1 : 1));
  const undescribed = routes.filter(({ name }) => !Object.hasOwn(ROUTES, name)).map(({ name }) => name);
  const unserved = Object.keys(ROUTES).filter((name) => !routes.some((route) => route.name === name));
  if (undescribed.length > 0 || unserved.length > 0) {
    throw new Error(
      `apps/api/src/admin/openapi/descriptions.ts is stale. Routes without a description: ${undescribed.join(', ') || 'none'}. ` +
        `Descriptions without a route: ${unserved.join(', ') || 'none'}.`,
    );
  }
  const document: ApiDocument = {
    openapi: '3.0.3',
    info: {
      title: 'Berth management',
      version,
      description:
        'Lists page by cursor (limit, after, next). Any read takes wait, the position that a command answered. ' +
        'Errors are problem documents (RFC 9457). Types named in the answers are those of libs/domain/src/wire.',
    },
    paths: {},
    components: { schemas: { Problem: problemSchema } },
  };
  for (const route of routes) {
    const path = route.path.replace('*', '{key}');
    (document.paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  }
  return document;
}

function routesOf(controller: Type): readonly Route[] {
  const prefix = Reflect.getMetadata('path', controller) as string;
  const methods = controller.prototype as Record<string, object>;
  return Object.getOwnPropertyNames(controller.prototype).flatMap((handler): readonly Route[] => {
    const method = methods[handler];
    const verb = method && (Reflect.getMetadata('method', method) as RequestMethod | undefined);
    if (!method || verb === undefined) return [];
    const own = Reflect.getMetadata('path', method) as string;
    const path = `/${[prefix, own].filter((part) => part !== '/' && part !== '').join('/')}`
      .replace(/\/+/g, '/')
      .replace(/:(\w+)/g, '{$1}');
    const name = `${RequestMethod[verb]} ${path}`;
    const fallback = RequestMethod[verb] === 'POST' ? 201 : 200;
    const status = (Reflect.getMetadata('__httpCode__', method) as number | undefined) ?? fallback;
    return [{ name, method: RequestMethod[verb], path, controller, handler, status }];
  });
}

function operationOf({ name, controller, handler, path, status }: Route): Operation {
  const described = ROUTES[name];
  const types = (Reflect.getMetadata('design:paramtypes', controller.prototype as object, handler) ??
    []) as Type[];
  const given = (Reflect.getMetadata(ROUTE_ARGUMENTS, controller, handler) ?? {}) as Record<
    string,
    { index: number; data?: unknown }
  >;
  const parameters: Parameter[] = [...path.matchAll(/\{(\w+)\}|\*/g)].map(([, param]) => ({
    name: param ?? 'key',
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  let requestBody: unknown;
  for (const [key, { index, data }] of Object.entries(given)) {
    const kind = Number(key.split(':')[0]);
    const type = types[index];
    if (kind === HEADERS && typeof data === 'string') {
      parameters.push({ name: data, in: 'header', required: false, schema: { type: 'string' } });
    }
    if (!type || kind === PARAM) continue;
    const fields = fieldsOf(type);
    if (kind === QUERY) {
      parameters.push(
        ...fields.map(({ name: field, required, schema }) => ({
          name: field,
          in: 'query' as const,
          required,
          schema,
        })),
      );
    }
    if (kind === BODY && fields.length > 0) {
      const schema = {
        type: 'object',
        properties: Object.fromEntries(fields.map((field) => [field.name, field.schema])),
        required: fields.filter(({ required }) => required).map((field) => field.name),
      };
      requestBody = { required: true, content: { 'application/json': { schema } } };
    }
  }
  return {
    summary: described?.summary ?? '',
    operationId: `${controller.name.replace('Controller', '')}.${handler}`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      [status]: { description: described?.answers ?? '' },
      default: {
        description: 'A problem document',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

/** The fields of a DTO, from what checks them. */
function fieldsOf(type: Type) {
  const storage = getMetadataStorage();
  const checks = storage.getTargetValidationMetadatas(type, '', false, false);
  const defaults = new type() as Record<string, unknown>;
  const names = [...new Set(checks.map(({ propertyName }) => propertyName))].sort();
  return names.map((name) => {
    const own = checks.filter((check) => check.propertyName === name);
    const kinds = new Set(own.map((check) => check.name ?? check.type));
    const optional = own.some((check) => check.type === 'conditionalValidation');
    const value = defaults[name];
    return {
      name,
      required: !optional && value === undefined,
      schema: { ...schemaOf(kinds, own), ...(value === undefined ? {} : { default: value }) },
    };
  });
}

function schemaOf(
  kinds: ReadonlySet<string>,
  checks: readonly { name?: string; constraints?: unknown[] }[],
): object {
  const of = (name: string): unknown => checks.find((check) => check.name === name)?.constraints?.[0];
  const words = of('isIn');
  if (kinds.has('isInt') || kinds.has('isNumber')) {
    const [minimum, maximum] = [of('min'), of('max')];
    return {
      type: kinds.has('isInt') ? 'integer' : 'number',
      ...(minimum === undefined ? {} : { minimum }),
      ...(maximum === undefined ? {} : { maximum }),
    };
  }
  if (kinds.has('isBoolean')) return { type: 'boolean' };
  if (kinds.has('isObject')) return { type: 'object' };
  const text = { type: 'string', ...(Array.isArray(words) ? { enum: words } : {}) };
  if (kinds.has('isArray') || kinds.has('arrayNotEmpty')) return { type: 'array', items: text };
  return kinds.has('isIso8601') ? { type: 'string', format: 'date-time' } : text;
}

const problemSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: Object.keys(ERROR_CODES) },
    param: { type: 'string' },
    retryAfterSeconds: { type: 'integer' },
  },
};
