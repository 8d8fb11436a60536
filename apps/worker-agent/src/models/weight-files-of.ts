import { stat } from 'node:fs/promises';
import type { ModelKey } from '#domain/ids.js';
import type { ScannedModel } from './assemble.js';
import type { FileToHash } from './hashing/weight-hasher.js';

/** A weight file of a model, as the log names it and where it lies. */
export interface WeightFile extends FileToHash {
  readonly modelKey: ModelKey;
  readonly name: string;
}

/** Every file of what can be loaded, and of what is attached to it. A file that went meanwhile is left out. */
export async function weightFilesOf(models: readonly ScannedModel[]): Promise<readonly WeightFile[]> {
  const files = models.flatMap(({ model, files: paths, attached }) => {
    const { modelKey } = model;
    const sound = model.artifacts.filter((a) => a.broken === undefined);
    return [
      ...sound.flatMap((a) =>
        a.files.map(({ name }, i) => ({ modelKey, name, file: paths.get(a.label)?.[i] })),
      ),
      ...(model.attachments ?? []).map((a) => ({
        modelKey,
        name: a.files[0]?.name ?? a.label,
        file: attached.get(a.label),
      })),
    ];
  });
  const stamped = await Promise.all(
    files.map(async ({ modelKey, name, file }): Promise<WeightFile | undefined> => {
      if (file === undefined) return undefined;
      const stats = await stat(file).catch(() => undefined);
      return stats && { modelKey, name, file, bytes: stats.size, modifiedMs: stats.mtimeMs };
    }),
  );
  return stamped.filter((one) => one !== undefined);
}
