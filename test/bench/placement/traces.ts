import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the request traces lie: `BERTH_TRACES`, else `../shared/traces` beside the repository. Nothing of them is kept here. */
export const tracesFolder = (): string =>
  process.env['BERTH_TRACES'] ?? resolve(checkout(), '../shared/traces');

/** The folder of the repository, from the source or from what was built of it. */
function checkout(): string {
  let folder = fileURLToPath(new URL('.', import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = resolve(folder, '..');
    if (parent === folder) throw new Error('the placement bench runs from a checkout of the repository');
    folder = parent;
  }
  return folder;
}

/** Why the traces cannot be used, in a sentence with the next step; undefined when they are there. */
export function whyNoTraces(folder = tracesFolder()): string | undefined {
  const missing = NEEDED.find((part) => !existsSync(join(folder, part)));
  return missing === undefined
    ? undefined
    : `The request traces are not at ${folder} (no ${missing}): the placement bench needs a checkout with them beside it, or BERTH_TRACES set to their folder.`;
}

const NEEDED = [
  'servegen/deepseek-r1',
  'azure-llm-2023/AzureLLMInferenceTrace_conv.csv',
  'serverlessllm-loads',
];

/** One span of a client's calls: a renewal process with this rate and family of gaps. */
export interface RateWindow {
  readonly startSeconds: number;
  readonly perSecond: number;
  readonly family: 'Gamma' | 'Weibull' | undefined;
  readonly shape: number;
}

export interface ClientTrace {
  readonly name: string;
  readonly windows: readonly RateWindow[];
}

/** Length of a window in the ServeGen files. */
export const WINDOW_SECONDS = 600;

/** The clients of one ServeGen model, by their number. */
export function readClients(set: string, folder = tracesFolder()): readonly ClientTrace[] {
  const path = join(folder, 'servegen', set);
  return readdirSync(path)
    .map((file) => ({ file, number: Number(/chunk-(\d+)-/.exec(file)?.[1]) }))
    .sort((a, b) => a.number - b.number)
    .map(({ file, number }) => ({
      name: `${set}-${number}`,
      windows: readFileSync(join(path, file), 'utf8').trim().split('\n').map(windowOf),
    }));
}

function windowOf(line: string): RateWindow {
  const [start, rate, , family, shape] = line.split(',');
  return {
    startSeconds: Number(start),
    perSecond: Number(rate),
    family: family === 'Gamma' || family === 'Weibull' ? family : undefined,
    shape: Number(shape),
  };
}

export interface Lengths {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Prompt and output tokens of the calls of the Azure conversation service. */
export const readLengths = (folder = tracesFolder()): readonly Lengths[] =>
  readFileSync(join(folder, 'azure-llm-2023', 'AzureLLMInferenceTrace_conv.csv'), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [, prompt, output] = line.split(',');
      return { promptTokens: Number(prompt), outputTokens: Math.max(1, Number(output)) };
    });

/**
 * How much single loads differ from the median of their series: all series of the stock loader from disk. A model's
 * load times are noisy, and a policy must not be judged by luck.
 */
export function readLoadNoise(folder = tracesFolder()): readonly number[] {
  const path = join(folder, 'serverlessllm-loads');
  return readdirSync(path)
    .filter((file) => file.includes('safetensors') && file.includes('random'))
    .sort()
    .flatMap((file) => {
      const loads = JSON.parse(readFileSync(join(path, file), 'utf8')) as readonly { loading_time: number }[];
      const seconds = loads.map((load) => load.loading_time).sort((a, b) => a - b);
      const middle = seconds[Math.floor(seconds.length / 2)] ?? 1;
      return seconds.map((s) => s / middle);
    });
}
