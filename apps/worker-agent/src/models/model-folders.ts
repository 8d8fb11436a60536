import type { TemplateFacts } from './chat-template.js';
import { baseName } from './file-names.js';
import type { ModelRoot } from './roots.js';
import type { FoundFile } from './walk.js';

/** Files that belong to one model, before anything is read of them. */
export interface ModelFolder {
  readonly key: string;
  readonly aliases: readonly string[];
  readonly root: ModelRoot['name'];
  /** Relative to the root. */
  readonly path: string;
  /** Names relative to `path`. */
  readonly files: readonly (FoundFile & {
    readonly name: string;
    /** Said by the store: a file without an ending, or one that a program was started with. */
    readonly role?: 'model' | 'projector' | 'adapter';
  })[];
  /** Of a store that keeps it beside the weights. */
  readonly template?: TemplateFacts;
}

/** Files that make the folder in which they lie one model. */
const MAKING = new Set(['config.json', 'model_index.json', 'adapter_config.json']);

export const isModelFolderFile = (relative: string): boolean => MAKING.has(baseName(relative));

/**
 * How many of a path's folders name the model below a root that is laid out as `<owner>/<repo>/…`: one where the first
 * folder says itself what it is, else two.
 * @param described folders, relative to the root, that hold one of the files above.
 */
export function depthOfModel(described: ReadonlySet<string>, parts: readonly string[]): number {
  const first = parts[0] ?? '';
  return described.has(first) ? 1 : Math.min(2, parts.length - 1);
}

/** The folders that say what they are. */
export const describedFolders = (relatives: readonly string[]): ReadonlySet<string> =>
  new Set(
    relatives.filter(isModelFolderFile).map((relative) => relative.slice(0, relative.lastIndexOf('/'))),
  );
