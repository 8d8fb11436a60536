import type { ModelKind } from '#domain/placement-terms.js';
import { type ErrorShape, OPENAI_ERRORS } from './answer-filter.js';
import { CHAT, COMPLETIONS, EMBEDDINGS, type EngineRoute, RERANK, TRANSCRIPTIONS } from './engine-routes.js';
import { MESSAGES_ERRORS } from './protocols/messages/errors.js';
import { COUNT_TOKENS, MESSAGES } from './protocols/messages/protocol.js';
import { OLLAMA_ERRORS } from './protocols/ollama/errors.js';
import {
  OLLAMA_CHAT,
  OLLAMA_EMBED,
  OLLAMA_EMBEDDINGS,
  OLLAMA_GENERATE,
} from './protocols/ollama/protocol.js';
import type { Protocol } from './protocols/protocol.js';
import { RESPONSES } from './protocols/responses/protocol.js';

/** A route that is placed and forwarded; with a protocol, one that engines do not speak. */
export interface Endpoint extends EngineRoute {
  readonly protocol?: Protocol;
  /** Its body is a form with a file. */
  readonly form?: true;
}

const spoken = (path: string, route: EngineRoute, protocol: Protocol): Endpoint => ({
  ...route,
  path,
  protocol,
});

export const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map(
  [
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RERANK,
    { ...TRANSCRIPTIONS, form: true as const },
    spoken('/v1/responses', CHAT, RESPONSES),
    spoken('/v1/messages', CHAT, MESSAGES),
    spoken('/v1/messages/count_tokens', CHAT, COUNT_TOKENS),
    spoken('/api/chat', CHAT, OLLAMA_CHAT),
    spoken('/api/generate', CHAT, OLLAMA_GENERATE),
    spoken('/api/embed', EMBEDDINGS, OLLAMA_EMBED),
    spoken('/api/embeddings', EMBEDDINGS, OLLAMA_EMBEDDINGS),
  ].map((endpoint: Endpoint) => [endpoint.path, endpoint]),
);

/** Which endpoints a model of a kind answers, for the sentence of a refusal. */
export const endpointsOf = (kind: ModelKind): readonly string[] =>
  [...ENDPOINTS.values()]
    .filter(
      (endpoint) => endpoint.kind === kind && endpoint.protocol === undefined && endpoint.form === undefined,
    )
    .map((endpoint) => endpoint.path);

/**
 * The path without query, without slashes at its end or twice in a row (a base URL that ends with one makes two), and
 * without the host that a client which takes this server for its proxy puts before it.
 */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  let path = query < 0 ? url : url.slice(0, query);
  if (!path.startsWith('/')) path = path.replace(/^https?:\/\/[^/]*/i, '');
  if (path.includes('//')) path = path.replace(/\/{2,}/g, '/');
  while (path.length > 1 && path.endsWith('/')) path = path.slice(0, -1);
  return path;
}

/** Other names that clients and gateways know for routes of ours. */
const ALIASES: Readonly<Record<string, string>> = {
  '/v1/reranking': '/v1/rerank',
  '/v2/rerank': '/v1/rerank',
  '/reranking': '/v1/rerank',
  '/v1/health': '/health',
};
const WITHOUT_V1 =
  /^\/(?:chat\/completions|completions|embeddings|rerank|audio\/transcriptions|responses|messages|models)(?:\/|$)/;

/**
 * The route that a URL means: a base URL that lacks its `/v1`, or has it twice since the client adds its own, is the
 * commonest mistake in setting a client up.
 */
export function routeOf(url: string): string {
  const path = pathOf(url);
  if (ENDPOINTS.has(path)) return path;
  const once = path.startsWith('/v1/v1/') ? path.slice('/v1'.length) : path;
  const known = ALIASES[once];
  if (known !== undefined) return known;
  return WITHOUT_V1.test(once) ? `/v1${once}` : once;
}

/** `/v1/*`, `/api/*`, `/health` and `/metrics` never enter the framework. */
export const isDataPlane = (path: string): boolean =>
  path.startsWith('/v1/') ||
  path === '/v1' ||
  path === '/health' ||
  path === '/metrics' ||
  path.startsWith('/api/') ||
  path === '/api';

/** How errors are said on a path, whether or not there is anything on it. */
export function errorShapeOf(path: string): ErrorShape {
  if (path === '/api' || path.startsWith('/api/')) return OLLAMA_ERRORS;
  return path === '/v1/messages' || path.startsWith('/v1/messages/') ? MESSAGES_ERRORS : OPENAI_ERRORS;
}
