import { readFile } from 'node:fs/promises';
import { anyOf, readTemplate, type TemplateFacts } from './chat-template.js';
import type { FileStamp } from './file-facts.js';
import { baseName, isDescribing } from './file-names.js';
import { Gate } from './gate.js';

/** JSON of a small file beside weights, as far as it is an object. */
export type Json = Readonly<Record<string, unknown>>;

const MOST_BYTES = 4 * 1024 * 1024;
/** Their presence is all that is asked of these; a tokenizer may have many megabytes. */
const PRESENCE_ONLY = new Set(['tokenizer.json', 'vocab.json', 'vocab.txt']);

const AT_ONCE = 16;

interface SmallFile extends FileStamp {
  readonly name: string;
  readonly absolute: string;
}

/** What the small files of a model folder say. Names are relative to the folder. */
export class Described {
  constructor(
    private readonly names: ReadonlySet<string>,
    private readonly objects: ReadonlyMap<string, Json>,
    private readonly texts: ReadonlyMap<string, string> = new Map(),
  ) {}

  has(name: string): boolean {
    return this.names.has(name);
  }
  /** Undefined when it is not there or is no JSON object. */
  json(name: string): Json | undefined {
    return this.objects.get(name);
  }
  /** Every file of that base name, by the folder that it lies in ('' for the top). */
  all(base: string): readonly { readonly folder: string; readonly json: Json }[] {
    return [...this.objects]
      .filter(([name]) => baseName(name) === base)
      .map(([name, json]) => ({ folder: name.slice(0, Math.max(0, name.length - base.length - 1)), json }));
  }
  get indexes(): readonly { readonly name: string; readonly files: ReadonlySet<string> }[] {
    return [...this.objects]
      .filter(([name]) => name.endsWith('.safetensors.index.json'))
      .map(([name, json]) => {
        const folder = name.slice(0, name.length - baseName(name).length);
        const map = isObject(json['weight_map']) ? Object.values(json['weight_map']) : [];
        return {
          name,
          files: new Set(map.flatMap((file) => (typeof file === 'string' ? [folder + file] : []))),
        };
      });
  }
  /** What the chat templates beside the weights show; undefined when there is none. */
  get template(): TemplateFacts | undefined {
    const said = [
      this.json('tokenizer_config.json')?.['chat_template'],
      this.json('chat_template.json')?.['chat_template'],
      this.texts.get('chat_template.jinja'),
    ];
    const texts = said.flatMap((one) =>
      typeof one === 'string'
        ? [one]
        : Array.isArray(one)
          ? one.flatMap((t: unknown) =>
              isObject(t) && typeof t['template'] === 'string' ? [t['template']] : [],
            )
          : [],
    );
    return anyOf(texts.map(readTemplate));
  }
  get hasTokenizer(): boolean {
    return [
      'tokenizer.json',
      'tokenizer.model',
      'tekken.json',
      'vocab.json',
      'vocab.txt',
      'spiece.model',
      'sentencepiece.bpe.model',
    ].some((name) => this.has(name));
  }
}

/** Reads small files once for as long as they do not change. */
export class DescribingReader {
  private readonly gate = new Gate(AT_ONCE);
  private readonly known = new Map<string, FileStamp & { readonly content: Json | string | undefined }>();

  async read(files: readonly SmallFile[]): Promise<Described> {
    const small = files.filter(({ name }) => isDescribing(name));
    const objects = new Map<string, Json>();
    const texts = new Map<string, string>();
    const contents = await Promise.all(
      small.map(async (file) => (PRESENCE_ONLY.has(baseName(file.name)) ? undefined : this.content(file))),
    );
    for (const [i, { name }] of small.entries()) {
      const content = contents[i];
      if (typeof content === 'string') texts.set(name, content);
      else if (content !== undefined) objects.set(name, content);
    }
    return new Described(new Set(small.map(({ name }) => name)), objects, texts);
  }

  keepOnly(files: { has(file: string): boolean }): void {
    for (const file of this.known.keys()) if (!files.has(file)) this.known.delete(file);
  }

  private async content(file: SmallFile): Promise<Json | string | undefined> {
    const known = this.known.get(file.absolute);
    if (known?.bytes === file.bytes && known.modifiedMs === file.modifiedMs) return known.content;
    const content = file.bytes > MOST_BYTES ? undefined : await this.gate.run(() => readSmall(file.absolute));
    this.known.set(file.absolute, { bytes: file.bytes, modifiedMs: file.modifiedMs, content });
    return content;
  }
}

async function readSmall(path: string): Promise<Json | string | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    if (!path.endsWith('.json') && !text.trimStart().startsWith('{"')) return text;
    const content: unknown = JSON.parse(text);
    return isObject(content) ? content : undefined;
  } catch {
    // Gone since it was listed, or being written: to this scan it says nothing.
    return undefined;
  }
}

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
