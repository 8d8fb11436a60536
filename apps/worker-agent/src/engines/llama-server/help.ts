/** What a binary's `--help` lists. Names move between releases, and an unknown one ends the program. */
export interface KnownFlags {
  has(name: string): boolean;
  /** The first of these names that the binary knows. */
  first(...names: readonly string[]): string | undefined;
  /** Whether the text says that a flag takes one of the words `on` and `off`. */
  takesOnOff(name: string): boolean;
  /** Whether the text names this environment variable. */
  readsEnvironment(variable: string): boolean;
}

/** Lines such as `-c,    --ctx-size N          size of the prompt context (default: 4096)`. */
export function parseHelp(text: string): KnownFlags {
  const heads = new Map<string, string>();
  for (const line of text.split('\n')) {
    let rest = line.trimStart();
    const names: string[] = [];
    for (;;) {
      const match = /^(--?[A-Za-z][\w-]*)(,\s*|\s+|$)/.exec(rest);
      if (!match?.[1]) break;
      names.push(match[1]);
      rest = rest.slice(match[0].length);
      if (!match[2]?.startsWith(',')) break;
    }
    // What follows the names up to a wide gap is the kind of value.
    const head = /^(.*?)(?:\s{2,}|$)/.exec(rest)?.[1] ?? '';
    for (const name of names) heads.set(name, head);
  }
  return {
    has: (name) => heads.has(name),
    first: (...names) => names.find((name) => heads.has(name)),
    takesOnOff: (name) => /\bon\b.*\boff\b/.test(heads.get(name) ?? ''),
    readsEnvironment: (variable) => text.includes(variable),
  };
}
