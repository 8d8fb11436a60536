/** States hold maps and sets, which JSON does not know: each is written as an object with one of these names alone. */
const MAP = '$map';
const SET = '$set';

export function stateToText(state: unknown): string {
  return JSON.stringify(state, (_name, value: unknown) => {
    if (value instanceof Map) return { [MAP]: [...(value as Map<unknown, unknown>)] };
    if (value instanceof Set) return { [SET]: [...(value as Set<unknown>)] };
    return value;
  });
}

/** @throws when it is no JSON. */
export function stateFromText(text: string): unknown {
  return JSON.parse(text, (_name, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const [only, ...others] = Object.entries(value);
    if (!only || others.length > 0 || !Array.isArray(only[1])) return value;
    if (only[0] === MAP) return new Map(only[1] as [unknown, unknown][]);
    return only[0] === SET ? new Set(only[1] as unknown[]) : value;
  });
}
