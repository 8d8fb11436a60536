import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { writeGguf } from './gguf-writer.js';
import { PRESETS, presetParts, scriptOf, type Preset } from './presets.js';
import { DEFAULT_SEED, TOOL_CALL, type Script } from './script.js';

export { PRESETS, type Preset } from './presets.js';

export interface MakeModelOptions {
  readonly preset: Preset;
  /** Where the GGUF goes; its folder is made. */
  readonly file: string;
  readonly seed?: number;
  /** About the file's size in 10^6 bytes, never below it; only `big` and `moe` can be sized. */
  readonly sizeMb?: number;
  /** Trained context; default 8,192 (`big` and a sized `moe` 32,768, encoders 512). */
  readonly contextTokens?: number;
  /** Overwrites a file that is there. */
  readonly force?: boolean;
}

/** What a real engine says with the model. */
export interface Expected {
  /** The answer; of an endless model its first round, after which it goes on with `repeats`. Empty: it does not speak. */
  readonly text: string;
  readonly reasoning?: string;
  readonly repeats?: string;
  /** Called when a request brings tools. Absent: it does not speak. */
  readonly toolCall?: typeof TOOL_CALL;
}

export interface MadeModel {
  readonly file: string;
  readonly bytes: number;
  readonly expects: Expected;
}

/**
 * Writes a small real GGUF whose text is known in advance. Same options, same bytes.
 * @throws Error in words when the file is there already, or an option does not suit the preset.
 */
export async function makeModel(options: MakeModelOptions): Promise<MadeModel> {
  const { preset, sizeMb, contextTokens } = options;
  const file = resolve(options.file);
  const seed = options.seed ?? DEFAULT_SEED;
  if (sizeMb !== undefined && preset !== 'big' && preset !== 'moe') {
    throw new Error(`The preset ${preset} has one size. Give a size to big or moe.`);
  }
  if (options.force !== true && existsSync(file)) {
    throw new Error(`${file} is there already. Name another file, or overwrite it with --force.`);
  }
  const { header, tensors } = presetParts(preset, {
    seed,
    ...(sizeMb === undefined ? {} : { sizeMb }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  });
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = await writeGguf(
    file,
    {
      ...header,
      'general.name': { text: `berth-${preset}` },
      'general.description': {
        text: 'Written by berth make-model; its weights make its text known in advance.',
      },
      'berth.preset': { text: preset },
      'berth.seed': { u32: seed },
    },
    tensors,
  );
  return { file, bytes, expects: expectedText(preset, seed) };
}

/** What a model of the preset says, without writing it. */
export function expectedText(preset: Preset, seed: number = DEFAULT_SEED): Expected {
  const script: Script | undefined = scriptOf(preset, seed);
  if (script === undefined) return { text: '' };
  return {
    text: script.answer,
    toolCall: TOOL_CALL,
    ...(script.reasoning === undefined ? {} : { reasoning: script.reasoning }),
    ...(script.endless === true ? { repeats: ` ${script.answer.toLowerCase()}` } : {}),
  };
}

export const isPreset = (text: string): text is Preset => (PRESETS as readonly string[]).includes(text);
