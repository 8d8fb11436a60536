import { listFiles, HubApiError } from '@huggingface/hub';
import type { RepoFile } from './choose.js';

/** How to reach the hub. The token goes into a header of requests to the endpoint and nowhere else. */
export interface HubAccess {
  readonly endpoint: string;
  readonly token?: string;
}

export function hubAccess(env: Readonly<Record<string, string | undefined>>): HubAccess {
  const endpoint = (env['HF_ENDPOINT'] ?? '') || 'https://huggingface.co';
  const token = env['HF_TOKEN'] ?? '';
  return { endpoint: endpoint.replace(/\/+$/, ''), ...(token === '' ? {} : { token }) };
}

export const authorization = (access: HubAccess): Record<string, string> =>
  access.token === undefined ? {} : { authorization: `Bearer ${access.token}` };

/**
 * All files of a repository.
 * @throws Error in words: out of reach, unknown, or not ours to read.
 */
export async function listRepo(
  access: HubAccess,
  repo: string,
  signal: AbortSignal,
): Promise<readonly RepoFile[]> {
  const files: RepoFile[] = [];
  try {
    const entries = listFiles({
      repo: { type: 'model', name: repo },
      recursive: true,
      hubUrl: access.endpoint,
      fetch: (url, init) =>
        fetch(url, {
          ...init,
          signal,
          headers: { ...(init?.headers as Record<string, string> | undefined), ...authorization(access) },
        }),
    });
    for await (const entry of entries) {
      if (entry.type !== 'file') continue;
      files.push({
        path: entry.path,
        bytes: entry.lfs?.size ?? entry.size,
        ...(entry.lfs === undefined
          ? entry.oid === undefined
            ? {}
            : { gitSha1: entry.oid }
          : { sha256: entry.lfs.oid.replace(/^sha256:/, '') }),
      });
    }
  } catch (error) {
    if (error instanceof HubApiError)
      throw new Error(refusal(access, repo, error.statusCode), { cause: error });
    throw unreachable(access, error);
  }
  return files;
}

export const fileUrl = (access: HubAccess, repo: string, path: string): string =>
  `${access.endpoint}/${repo}/resolve/main/${path.split('/').map(encodeURIComponent).join('/')}`;

/** What an HTTP status of the hub means to a person. */
export function refusal(access: HubAccess, repo: string, status: number): string {
  const page = `${access.endpoint}/${repo}`;
  if (status === 404) return `There is no repository or file at ${page}. Check the name.`;
  if (status === 401 || status === 403) {
    return access.token === undefined
      ? `${page} does not exist, or asks who you are: accept its terms on that page if it has some, and set HF_TOKEN to a token of yours.`
      : `${page} does not exist, or your HF_TOKEN may not read it: accept its terms on that page, or use another token.`;
  }
  if (status === 429)
    return `${access.endpoint} asks to wait (too many requests). Try again in a few minutes.`;
  return `${page} answered with status ${status}. Try again later.`;
}

/** One sentence for a hub that cannot be reached; other errors as they are. */
export function unreachable(access: HubAccess, error: unknown): Error {
  const code = networkCode(error);
  if (code === undefined) return error instanceof Error ? error : new Error(String(error));
  return new Error(
    `${new URL(access.endpoint).host} cannot be reached (${code}). Are you offline? What was fetched so far is kept: run the same command again to go on.`,
    { cause: error },
  );
}

/** `ECONNREFUSED` and the like from the causes of a failed fetch; undefined for any other error. */
export function networkCode(error: unknown): string | undefined {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (e instanceof AggregateError) {
      const inner: unknown = e.errors[0];
      const code = networkCode(inner);
      if (code !== undefined) return code;
    }
    const code: unknown = 'code' in e ? e.code : undefined;
    if (typeof code === 'string' && /^(E[A-Z_]+|UND_ERR_[A-Z_]+|CERT_[A-Z_]+)$/.test(code)) return code;
  }
  return undefined;
}
