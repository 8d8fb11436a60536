import type { WireProblem } from '#domain/wire/index.js';
import { session } from './session.svelte.js';

/** What went wrong, as a sentence to show. `status` 0: the server was not reached. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Relative to the page, so that a path prefix of a proxy is kept. */
export function urlOf(path: string, query: Query = {}): string {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, String(value));
  return url.href;
}

export function headersOf(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { ...more, ...(session.key === undefined ? {} : { authorization: `Bearer ${session.key}` }) };
}

/** A JSON answer. @throws ApiFailure with the problem document's sentence; AbortError as it is. */
export async function request<T>(
  method: string,
  path: string,
  parts: {
    query?: Query;
    body?: unknown;
    signal?: AbortSignal;
    headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<T> {
  const response = await fetch(urlOf(path, parts.query), {
    method,
    headers: headersOf({
      accept: 'application/json',
      ...(parts.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...parts.headers,
    }),
    ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
    ...(parts.signal ? { signal: parts.signal } : {}),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiFailure(
      0,
      'unreachable',
      'Berth does not answer. It may be stopped, or the network is gone.',
    );
  });
  const text = await response.text();
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
  throw failure(response, text);
}

function failure(response: Response, text: string): ApiFailure {
  const problem = problemOf(text);
  const message = problem?.detail ?? `The server answered ${response.status} ${response.statusText}.`;
  const failed = new ApiFailure(response.status, problem?.code ?? 'unknown', message);
  if (response.status === 401 || failed.code === 'forbidden') session.keepOut(message);
  return failed;
}

function problemOf(text: string): Partial<WireProblem> | undefined {
  try {
    return JSON.parse(text) as Partial<WireProblem>;
  } catch {
    return undefined;
  }
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> =>
  request<T>('GET', path, { ...(query ? { query } : {}), ...(signal ? { signal } : {}) });

/** A model's key or a scope as part of a path. */
export const segment = (text: string): string => encodeURIComponent(text);
