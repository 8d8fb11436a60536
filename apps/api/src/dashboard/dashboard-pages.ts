import type { IncomingMessage, ServerResponse } from 'node:http';
import { pathOf } from '../gateway/endpoints.js';
import { type PageFile, readPageFiles } from './page-files.js';

/** The page runs its own files alone, speaks to its own server alone, and may be framed by nobody. */
const SECURITY: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types svelte-trusted-html',
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const NOT_BUILT =
  'The dashboard was not built. Run `npm run build` in the folder of Berth and start it again.\n';

/**
 * The dashboard's files, which hold nothing secret and are open to whoever reaches the port; what they show is asked of
 * the management API, under its rules.
 */
export class DashboardPages {
  readonly #folder: string;
  #files: ReadonlyMap<string, PageFile> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @returns whether the request was for the page, and is answered. */
  handle(req: IncomingMessage, res: ServerResponse): boolean {
    const path = pathOf(req.url ?? '/');
    if (path !== '/' && path !== '/index.html' && path !== '/favicon.svg' && !path.startsWith('/assets/'))
      return false;
    // Read at the first request: a start does not wait for it.
    this.#files ??= readPageFiles(this.#folder);
    req.resume();
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      plain(res, 405, `${path} takes GET.\n`, { allow: 'GET, HEAD' });
      return true;
    }
    const file = this.#files.get(path);
    if (file) send(req, res, file);
    else if (this.#files.size === 0) plain(res, 503, NOT_BUILT, { 'retry-after': '60' });
    else plain(res, 404, `There is no ${path.slice(0, 200)} here.\n`);
    return true;
  }
}

function send(req: IncomingMessage, res: ServerResponse, file: PageFile): void {
  const cache = {
    etag: file.etag,
    'cache-control': file.hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
  };
  if (req.headers['if-none-match'] === file.etag) {
    res.writeHead(304, { ...SECURITY, ...cache }).end();
    return;
  }
  const { body, encoding } = encoded(file, req.headers['accept-encoding'] ?? '');
  res.writeHead(200, {
    ...SECURITY,
    ...cache,
    'content-type': file.type,
    'content-length': body.length,
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
  });
  res.end(req.method === 'HEAD' ? undefined : body);
}

function encoded(file: PageFile, accepted: string): { body: Buffer; encoding?: string } {
  const takes = (name: string) =>
    new RegExp(`(^|[\\s,])${name}\\s*(;(?!\\s*q=0(\\.0*)?\\s*(,|$))|,|$)`).test(accepted);
  if (file.br && takes('br')) return { body: file.br, encoding: 'br' };
  if (file.gzip && takes('gzip')) return { body: file.gzip, encoding: 'gzip' };
  return { body: file.body };
}

function plain(
  res: ServerResponse,
  status: number,
  text: string,
  more: Readonly<Record<string, string>> = {},
): void {
  res.writeHead(status, {
    ...SECURITY,
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    ...more,
  });
  res.end(text);
}
