import { formatBytes } from '#domain/units.js';
import { qualityRank, readName } from '../models/quant.js';

export interface RepoFile {
  /** In the repository, with `/`. */
  readonly path: string;
  readonly bytes: number;
  /** Of the content, hex. */
  readonly sha256?: string;
  /** Git's object id, for files that are kept in Git itself. */
  readonly gitSha1?: string;
}

/** One loadable form: a file, or all shards of one. */
export interface Choice {
  readonly label: string;
  readonly files: readonly RepoFile[];
  readonly bytes: number;
}

/** Taken when nothing is picked: the usual balance of size and quality. */
const USUAL = 'Q4_K_M';

/** The loadable forms in a repository, best first; projectors and importance matrices are none. */
export function choicesIn(files: readonly RepoFile[]): readonly Choice[] {
  const sets = new Map<string, RepoFile[]>();
  for (const file of files) {
    const name = baseName(file.path);
    if (!/\.gguf$/i.test(name) || /(?:^|[.-])(?:mmproj|imatrix)/i.test(name)) continue;
    const set = file.path.replace(/-\d{5}-of-(\d{5})\.gguf$/i, '-of-$1.gguf');
    sets.set(set, [...(sets.get(set) ?? []), file]);
  }
  return [...sets.values()]
    .map((set) => ({
      label: readName(baseName(set[0]?.path ?? '')).label ?? baseName(set[0]?.path ?? ''),
      files: [...set].sort((a, b) => (a.path < b.path ? -1 : 1)),
      bytes: set.reduce((total, file) => total + file.bytes, 0),
    }))
    .sort((a, b) => qualityRank(a.label) - qualityRank(b.label) || b.bytes - a.bytes);
}

/**
 * The form that was picked by file or by label; without a pick the only one, or Q4_K_M.
 * @throws Error that lists what there is.
 */
export function choose(repo: string, files: readonly RepoFile[], pick?: string): Choice {
  const choices = choicesIn(files);
  if (choices.length === 0) {
    throw new Error(`${repo} holds no GGUF file. Look for a repository whose name ends in -GGUF.`);
  }
  const wanted = pick?.toLowerCase();
  const fitting = choices.filter((choice) =>
    wanted === undefined
      ? choices.length === 1 || choice.label === USUAL
      : choice.label.toLowerCase() === wanted ||
        choice.files.some(
          (f) => f.path.toLowerCase() === wanted || baseName(f.path).toLowerCase() === wanted,
        ),
  );
  const [only, ...more] = fitting;
  if (only !== undefined && more.length === 0) return only;
  const why =
    pick === undefined
      ? `${repo} holds several models, none of which is the usual one`
      : fitting.length === 0
        ? `${repo} has no "${pick}"`
        : `${repo} has more than one "${pick}"`;
  throw new Error(`${why}. Pick one of:\n${list(more.length > 0 ? fitting : choices, repo)}`);
}

const list = (choices: readonly Choice[], repo: string): string => {
  const clashing = (label: string) => choices.filter((c) => c.label === label).length > 1;
  return choices
    .map(
      (c) =>
        `  ${repo}:${clashing(c.label) ? (c.files[0]?.path ?? c.label) : c.label}  ${formatBytes(c.bytes)}`,
    )
    .join('\n');
};

const baseName = (path: string) => path.split('/').at(-1) ?? path;
