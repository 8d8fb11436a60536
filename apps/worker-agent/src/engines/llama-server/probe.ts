import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type FileIdentity, identitiesOf } from '../file-identity.js';
import { engineEnvironment, isExecutable } from '../spawn.js';
import { NEEDED_FLAGS } from './arguments.js';
import { parseHelp, type KnownFlags } from './help.js';

const PROBE_MS = 20_000;

export interface ServerRoutes {
  readonly messages: boolean;
  readonly responses: boolean;
}
/** No flag tells them, and a server that runs has a model loaded: the names of its routes stand in the program. */
const ROUTES = { messages: Buffer.from('/v1/messages'), responses: Buffer.from('/v1/responses') } as const;
/** Releases that keep the server in a library beside the program: then that is what it is, too. */
const SERVER_LIBRARY = /^lib.*server.*\.(?:so|dylib)/;

export interface ServerBinary {
  readonly path: string;
  /** The program and what of it lies in libraries, as they were when it was probed. */
  readonly files: readonly FileIdentity[];
  readonly version: string;
  /** Commit and content, its library's included: two builds of one version are told apart. */
  readonly build: string;
  readonly flags: KnownFlags;
  /** Which of the routes of other protocols stand in the program. */
  readonly routes: ServerRoutes;
  /** Names as the binary gives them: `CUDA0`, `Vulkan0`. */
  readonly devices: readonly string[];
  /** The oracle beside it, and what it knows. */
  readonly oracle?: { readonly path: string; readonly flags: KnownFlags };
}

/**
 * Asks a binary what it is. `--help` is kept by the content of the file; version and devices are asked each time, since
 * libraries and hardware change without the file.
 * @param cacheFolder where the texts are kept.
 * @throws Error that says what the binary lacks or how it failed.
 */
export async function probeServer(path: string, cacheFolder: string): Promise<ServerBinary> {
  const files = identitiesOf([path, ...(await librariesOf(path))]);
  const { hash, routes } = await contentOf(files.map((file) => file.path));
  const said = await run(path, ['--version']);
  const [, version, commit] = /version:\s*(\S+)(?:\s*\(([^)]+)\))?/.exec(said) ?? [];
  if (version === undefined) throw new Error(`${path} --version does not say a version`);
  const help = await cached(join(cacheFolder, `llama-server-${hash}-${commit ?? version}.help`), () =>
    run(path, ['--help']),
  );
  const flags = parseHelp(help);
  const missing = NEEDED_FLAGS.filter((names) => flags.first(...names) === undefined);
  if (missing.length > 0) {
    throw new Error(`${path} does not list ${missing.map((names) => names.at(-1)).join(', ')} in --help`);
  }
  if (!flags.readsEnvironment('LLAMA_API_KEY') && !flags.has('--api-key-file')) {
    throw new Error(
      `${path} takes its key on the command line only, where every user of the machine can read it`,
    );
  }
  const devices = flags.has('--list-devices') ? parseDevices(await run(path, ['--list-devices'])) : [];
  const oracle = await probeOracle(join(dirname(path), 'llama-fit-params'), cacheFolder);
  return {
    path,
    files,
    version,
    build: `${commit ?? version}-${hash.slice(0, 8)}`,
    flags,
    routes,
    devices,
    ...(oracle === undefined ? {} : { oracle }),
  };
}

async function probeOracle(path: string, cacheFolder: string): Promise<ServerBinary['oracle']> {
  if (!isExecutable(path)) return undefined;
  try {
    const { hash } = await contentOf([path]);
    const help = await cached(join(cacheFolder, `llama-fit-params-${hash}.help`), () =>
      run(path, ['--help']),
    );
    return { path, flags: parseHelp(help) };
  } catch {
    // Without its oracle a server still serves; its plans are then sized from the header and from history.
    return undefined;
  }
}

/** Lines such as `  CUDA0: NVIDIA H200 (143156 MiB, 142000 MiB free)`. */
export function parseDevices(text: string): readonly string[] {
  return [...text.matchAll(/^\s*-?\s*(\w+)\s*:.*\(\d+ MiB, \d+ MiB free\)/gm)]
    .map((match) => match[1] ?? '')
    .filter((name) => name !== '' && name !== 'CPU');
}

/** Output and error text of a program that should end by itself at once. @throws Error with its last words. */
export function run(path: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      path,
      args,
      {
        timeout: PROBE_MS,
        killSignal: 'SIGKILL',
        maxBuffer: 4 * 1024 * 1024,
        env: engineEnvironment(process.env, {}),
      },
      (error, stdout, stderr) => {
        if (!error) {
          resolve(`${stdout}\n${stderr}`);
          return;
        }
        const last = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
        const how = error.killed === true ? `did not end within ${PROBE_MS / 1000} s` : 'failed';
        reject(
          new Error(
            `${path} ${args.join(' ')} ${how}${last === '' ? `: ${error.message.trim()}` : `: ${last}`}`,
          ),
        );
      },
    );
  });
}

/** Reads files once: who they are together by their content, and which routes they name. */
async function contentOf(paths: readonly string[]): Promise<{ hash: string; routes: ServerRoutes }> {
  const hash = createHash('sha256');
  const routes = { messages: false, responses: false };
  for (const path of paths) {
    let tail = Buffer.alloc(0);
    const chunks = createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      hash.update(chunk);
      // A name may lie across two reads.
      const bytes = Buffer.concat([tail, chunk]);
      routes.messages ||= bytes.includes(ROUTES.messages);
      routes.responses ||= bytes.includes(ROUTES.responses);
      tail = bytes.subarray(-ROUTES.responses.length);
    }
  }
  return { hash: hash.digest('hex').slice(0, 32), routes };
}

/** In the order of their names, each once: releases link several names to one file. */
async function librariesOf(path: string): Promise<readonly string[]> {
  const folder = dirname(await realpath(path));
  const names = (await readdir(folder)).filter((name) => SERVER_LIBRARY.test(name)).sort();
  return [...new Set(await Promise.all(names.map((name) => realpath(join(folder, name)))))];
}

async function cached(file: string, make: () => Promise<string>): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const text = await make();
    await writeFile(file, text, { mode: 0o600 });
    return text;
  }
}
