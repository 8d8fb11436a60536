/**
 * A function of an immutable object that keeps each result as long as the object lives. Folds replace what changed and
 * keep the rest, so what was worked out for a resident, a history or a header is worked out once.
 */
export function memo<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const kept = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const known = kept.get(key);
    if (known) return known.value;
    const value = make(key);
    kept.set(key, { value });
    return value;
  };
}
