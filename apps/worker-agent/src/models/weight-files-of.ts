import type { ModelKey } from '#domain/ids.js';
import type { ScannedModel } from './assemble.js';
import type { FileStamp } from './file-facts.js';
import type { FileToHash } from './hashing/weight-hasher.js';

/** A weight file of a model, as the log names it and where it lies. */
export interface WeightFile extends FileToHash {
  readonly modelKey: ModelKey;
  readonly name: string;
}

/**
 * Every file of what can be loaded, and of what is attached to it.
 * @param stamps of the scan that found them; a file without one is left out.
 */
export function weightFilesOf(
  models: readonly ScannedModel[],
  stamps: ReadonlyMap<string, FileStamp>,
): readonly WeightFile[] {
  const files: WeightFile[] = [];
  const add = (modelKey: ModelKey, name: string, file: string | undefined): void => {
    const stamp = file === undefined ? undefined : stamps.get(file);
    if (file === undefined || stamp === undefined) return;
    files.push({ modelKey, name, file, bytes: stamp.bytes, modifiedMs: stamp.modifiedMs });
  };
  for (const { model, files: paths, attached } of models) {
    const { modelKey } = model;
    for (const artifact of model.artifacts) {
      if (artifact.broken !== undefined) continue;
      for (const [i, { name }] of artifact.files.entries())
        add(modelKey, name, paths.get(artifact.label)?.[i]);
    }
    for (const one of model.attachments ?? [])
      add(modelKey, one.files[0]?.name ?? one.label, attached.get(one.label));
  }
  return files;
}
