import { classKey, type PlacementClass } from '#domain/placement-terms.js';

/** Stands for a worker whose engines project nothing: where none is asked, as in a simulation. */
export const NOTHING_PROJECTS: ReadonlySet<string> = new Set();

/** Whether the engine was asked about a class and could not say; a key is made only where some class is known so. */
export const cannotProject = (unprojectable: ReadonlySet<string>, klass: PlacementClass): boolean =>
  unprojectable === NOTHING_PROJECTS || (unprojectable.size > 0 && unprojectable.has(classKey(klass)));
