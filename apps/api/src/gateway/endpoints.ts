import type { ModelKind } from '#domain/placement-terms.js';

/** A route that is placed and forwarded. */
export interface Endpoint {
  readonly path: string;
  readonly kind: ModelKind;
  /** Fields whose text is the prompt, for its estimated length. */
  readonly promptFields: readonly string[];
  readonly streams: boolean;
}

const chat: Endpoint = {
  path: '/v1/chat/completions',
  kind: 'chat',
  promptFields: ['messages', 'tools'],
  streams: true,
};
const completions: Endpoint = {
  path: '/v1/completions',
  kind: 'chat',
  promptFields: ['prompt'],
  streams: true,
};
const embeddings: Endpoint = {
  path: '/v1/embeddings',
  kind: 'embedding',
  promptFields: ['input'],
  streams: false,
};
const rerank: Endpoint = {
  path: '/v1/rerank',
  kind: 'rerank',
  promptFields: ['query', 'documents'],
  streams: false,
};

export const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map(
  [chat, completions, embeddings, rerank].map((endpoint) => [endpoint.path, endpoint]),
);

/** Which endpoints a model of a kind answers, for the sentence of a refusal. */
export const endpointsOf = (kind: ModelKind): readonly string[] =>
  [...ENDPOINTS.values()].filter((endpoint) => endpoint.kind === kind).map((endpoint) => endpoint.path);

/** The path without query and without slashes at its end. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  let path = query < 0 ? url : url.slice(0, query);
  while (path.length > 1 && path.endsWith('/')) path = path.slice(0, -1);
  return path;
}

/** `/v1/*` and `/health` never enter the framework. */
export const isDataPlane = (path: string): boolean =>
  path === '/health' || path === '/v1' || path.startsWith('/v1/');
