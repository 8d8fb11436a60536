import { v5, v7 } from 'uuid';

/** Namespace of ids derived by Berth. Never change it: retried writes find their first try by it. */
const NAMESPACE = '6e1c0a3f-7f7c-5d5e-9d0a-3c9b0b7c2a51';

/** A new id, ordered by time. */
export const newId = (): string => v7();

/** The same parts give the same id: for every write that a retry could make twice. */
export const derivedId = (...parts: readonly string[]): string => v5(parts.join(' '), NAMESPACE);
