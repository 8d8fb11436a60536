/** An element of a driver's report: its children in order, and its own text. Attributes but `id` are not kept. */
export interface XmlElement {
  readonly tag: string;
  readonly id?: string;
  readonly text: string;
  readonly children: readonly XmlElement[];
}

const TOKEN = /<!--[\s\S]*?-->|<[?!][^>]*>|<\/([\w.:-]+)\s*>|<([\w.:-]+)((?:\s[^>]*?)?)(\/?)>|([^<]+)/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const DEEPEST = 32;

interface Open {
  readonly tag: string;
  readonly id?: string;
  text: string;
  readonly children: XmlElement[];
}

/** Reads what it can: a report that is cut off gives the elements that were closed; garbage gives none. */
export function parseXml(text: string): readonly XmlElement[] {
  const roots: XmlElement[] = [];
  const stack: Open[] = [];
  for (const [, closing, opening, attributes = '', single, words] of text.matchAll(TOKEN)) {
    const top = stack.at(-1);
    if (words !== undefined) {
      if (top !== undefined) top.text += words;
    } else if (opening !== undefined) {
      const id = /\bid\s*=\s*"([^"]*)"/.exec(attributes)?.[1];
      const element: Open = { tag: opening, text: '', children: [], ...(id === undefined ? {} : { id }) };
      if (single === '/') (top?.children ?? roots).push(closed(element));
      else if (stack.length < DEEPEST) stack.push(element);
    } else if (closing !== undefined && stack.some((open) => open.tag === closing)) {
      // What was left open within it ends with it.
      for (;;) {
        const done = stack.pop();
        if (done === undefined) break;
        (stack.at(-1)?.children ?? roots).push(closed(done));
        if (done.tag === closing) break;
      }
    }
  }
  return roots;
}

const closed = (open: Open): XmlElement => ({ ...open, text: decode(open.text.trim()) });

const decode = (text: string): string =>
  text.replace(/&(\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole);

/** The first element on a path of tags below this one. */
export function at(element: XmlElement | undefined, ...path: readonly string[]): XmlElement | undefined {
  return path.reduce<XmlElement | undefined>(
    (here, tag) => here?.children.find((child) => child.tag === tag),
    element,
  );
}

export const every = (element: XmlElement | undefined, tag: string): readonly XmlElement[] =>
  element?.children.filter((child) => child.tag === tag) ?? [];
