import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** One file of the built page, with what the build compressed beside it. */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly br?: Buffer;
  readonly gzip?: Buffer;
  readonly etag: string;
  /** Its name carries a hash of its content: it never changes. */
  readonly hashed: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};
const HASHED_FOLDER = 'assets';

/** Reads the whole page into memory, some hundred kilobytes. @returns by path; empty when it was not built. */
export function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  if (!existsSync(join(folder, 'index.html'))) return files;
  for (const name of readdirSync(folder)) add(files, folder, name);
  const hashed = join(folder, HASHED_FOLDER);
  for (const name of existsSync(hashed) ? readdirSync(hashed) : [])
    add(files, folder, `${HASHED_FOLDER}/${name}`);
  const index = files.get('/index.html');
  if (index) files.set('/', index);
  return files;
}

function add(files: Map<string, PageFile>, folder: string, path: string): void {
  const type = TYPES[extname(path)];
  if (type === undefined) return;
  const body = readFileSync(join(folder, path));
  const beside = (ending: string): Buffer | undefined =>
    existsSync(join(folder, path + ending)) ? readFileSync(join(folder, path + ending)) : undefined;
  const [br, gzip] = [beside('.br'), beside('.gz')];
  files.set(`/${path}`, {
    type,
    body,
    ...(br ? { br } : {}),
    ...(gzip ? { gzip } : {}),
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
    hashed: path.startsWith(`${HASHED_FOLDER}/`),
  });
}
