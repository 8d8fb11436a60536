import { mkdir } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '#runtime/logger.js';
import { makeModel } from '../make-model/index.js';

/** Where the smoke model lies below the root of models; its key. */
export const SMOKE_MODEL = 'berth/smoke';

/**
 * Writes a small real model so that there is something to call. Only for a machine on which no model was found; the
 * file's own header says what it is.
 */
export async function writeSmokeModel(root: string, log: Logger): Promise<void> {
  const folder = join(root, ...SMOKE_MODEL.split('/'));
  const file = join(folder, 'smoke-F16.gguf');
  if (existsSync(file)) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await makeModel({ preset: 'smoke', file });
  log.info({ file }, 'no model was found; a smoke model was written');
}
