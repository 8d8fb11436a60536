import { parseArgs } from 'node:util';
import { formatBytes } from '#domain/units.js';
import { PRESETS, isPreset, makeModel, type MadeModel } from './make-model.js';

const USAGE = `berth make-model PRESET FILE [--seed N] [--size-mb N] [--context N] [--force]
Presets: ${PRESETS.join(', ')}`;

/** @throws Error in words about what is wrong with the arguments. */
async function run(args: readonly string[]): Promise<string> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      'size-mb': { type: 'string' },
      context: { type: 'string' },
      force: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return USAGE;
  const [preset, file, ...more] = positionals;
  if (preset === undefined || file === undefined || more.length > 0) throw new Error(USAGE);
  if (!isPreset(preset)) throw new Error(`There is no preset "${preset}". Known: ${PRESETS.join(', ')}.`);
  const seed = whole('--seed', values.seed, 0, 0xffff_ffff);
  const sizeMb = whole('--size-mb', values['size-mb'], 1, 1_000_000);
  const contextTokens = whole('--context', values.context, 32, 10_000_000);
  const made = await makeModel({
    preset,
    file,
    force: values.force,
    ...(seed === undefined ? {} : { seed }),
    ...(sizeMb === undefined ? {} : { sizeMb }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  });
  return sentence(made, preset);
}

function sentence({ file, bytes, expects }: MadeModel, preset: string): string {
  const says =
    expects.text === ''
      ? `it does not speak (${preset === 'embed' ? 'embeddings' : 'reranking'})`
      : `it says ${expects.reasoning === undefined ? '' : `(after thinking "${expects.reasoning}") `}"${expects.text}"${expects.repeats === undefined ? '' : ' and so on, without end'}`;
  return `${file}: ${formatBytes(bytes)}; ${says}`;
}

function whole(name: string, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new Error(`${name} must be a whole number from ${min} to ${max}, not "${text}".`);
  }
  return value;
}

try {
  process.stdout.write(`${await run(process.argv.slice(2))}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
