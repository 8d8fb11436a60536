import type { Attachment } from '#domain/events/catalog-events.js';
import type { Described } from './describing.js';
import { textOf } from './describing.js';
import type { FileFacts } from './file-facts.js';
import { baseName } from './file-names.js';
import { asModelFile, type ReadFile } from './weight-file.js';

/** An attachment whose base is to be found among the other models. */
export interface LooseAttachment {
  readonly attachment: Attachment;
  readonly path: string;
  /** Keys that it may be known by, the likeliest first; empty when its file names none. */
  readonly bases: readonly string[];
  /** What the base must be of; undefined when the file does not say. */
  readonly architecture?: string;
}

const elements = (facts: FileFacts): number =>
  facts.tensors.reduce((total, t) => total + t.shape.reduce((product, n) => product * n, 1), 0);

export function attachmentOf(role: Attachment['role'], one: ReadFile): LooseAttachment {
  const { values, broken } = one.facts;
  const architecture = textOf(values['general.architecture']);
  return {
    attachment: {
      role,
      label: baseName(one.file.name).replace(/\.(?:gguf|safetensors)$/i, ''),
      files: [asModelFile(one)],
      ...(role === 'adapter' ? { parameters: elements(one.facts) } : {}),
      ...(broken === undefined ? {} : { broken }),
    },
    path: one.file.absolute,
    bases: basesOfHeader(one.facts),
    ...(role === 'adapter' && architecture !== undefined ? { architecture } : {}),
  };
}

/** `https://huggingface.co/owner/repo`, or the organisation and the name apart. */
function basesOfHeader({ values }: FileFacts): readonly string[] {
  const url = textOf(values['general.base_model.0.repo_url']);
  const fromUrl = url === undefined ? undefined : /^https?:\/\/[^/]+\/([^/]+\/[^/]+)\/?$/.exec(url)?.[1];
  const owner = textOf(values['general.base_model.0.organization']);
  const name = textOf(values['general.base_model.0.name']);
  const apart =
    owner === undefined || name === undefined ? undefined : `${owner}/${name}`.replaceAll(' ', '-');
  return [fromUrl, apart].filter((base) => base !== undefined);
}

/** A PEFT adapter: `adapter_config.json` names its base as a repository, or as a folder. */
export function peftAdapter(one: ReadFile, described: Described): LooseAttachment {
  const base = textOf(described.json('adapter_config.json')?.['base_model_name_or_path']);
  const made = attachmentOf('adapter', one);
  const parts = base?.split('/').filter((part) => part !== '') ?? [];
  return { ...made, bases: base === undefined ? [] : [parts.slice(-2).join('/')] };
}

/** Publishers put their conversions into repositories of like names. */
export function isBase(key: string, base: string): boolean {
  const plain = (name: string) => name.toLowerCase().replace(/-gguf$/, '');
  const [a, b] = [plain(key), plain(base)];
  return a === b || a.split('/').at(-1) === b.split('/').at(-1);
}
