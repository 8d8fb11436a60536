import { join } from 'node:path';
import { DISK } from '#domain/ids.js';
import { formatBytes, parseBytes } from '#domain/units.js';
import { type DiskLimit, diskLimitOf } from '#domain/worker/disk-limit.js';
import { hubAccess } from './hub.js';
import { progressOn } from './progress.js';
import { pull, type Pulled } from './pull.js';

const USAGE = `berth pull OWNER/REPO[:FILE or :QUANT]
Fetches a GGUF from Hugging Face into the folder of models. HF_TOKEN and HF_ENDPOINT are honoured.`;
const STOPPED = 130;

function modelsFolder(): string {
  const { BERTH_MODELS: models = '', BERTH_HOME: home = '' } = process.env;
  if (models !== '') return models;
  if (home !== '') return join(home, 'models');
  throw new Error('BERTH_MODELS is not set: run this through bin/berth, which sets it.');
}

/** By this environment (resolved by bin/berth), and by what an admin set on the worker that runs on this home. */
function diskLimit(): DiskLimit | undefined {
  const tier = (name: string): ReadonlyMap<string, number> => {
    const text = process.env[name] ?? '';
    if (text === '') return new Map();
    const bytes = parseBytes(text);
    if (bytes === undefined) throw new Error(`${name} must be a size such as 12GiB, not "${text}".`);
    return new Map([[DISK, bytes]]);
  };
  return diskLimitOf({ designation: tier('BERTH_DISK_MAX'), setting: tier('BERTH_DISK_SETTING') });
}

function sentence({ modelKey, label, files }: Pulled): string {
  const bytes = files.reduce((total, file) => total + file.bytes, 0);
  const was = files.every((file) => file.present) ? 'was there already' : 'is here';
  return `${modelKey} (${label}, ${formatBytes(bytes)}) ${was}: call it by "${modelKey}".`;
}

const stop = new AbortController();
process.once('SIGINT', () => stop.abort(new Error('stopped')));
process.once('SIGTERM', () => stop.abort(new Error('stopped')));

const [source, ...more] = process.argv.slice(2);
try {
  if (source === '--help' || source === '-h') process.stdout.write(`${USAGE}\n`);
  else if (source === undefined || more.length > 0 || source.startsWith('-')) throw new Error(USAGE);
  else {
    const pulled = await pull({
      source,
      models: modelsFolder(),
      access: hubAccess(process.env),
      diskLimit,
      signal: stop.signal,
      progress: progressOn(process.stderr),
    });
    process.stdout.write(`${sentence(pulled)}\n`);
  }
} catch (error) {
  if (stop.signal.aborted) {
    process.stderr.write('Stopped. What was fetched is kept: run the same command again to go on.\n');
    process.exitCode = STOPPED;
  } else {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
