import {
  ABILITIES,
  type Ability,
  type FoundModel,
  type MarkerCorrection,
} from '#domain/events/catalog-events.js';
import { MODEL_KINDS, type ModelKind } from '#domain/placement-terms.js';
import type { Evidence } from './config-evidence.js';
import { countOf, isObject, textOf, type Json } from './describing.js';

/** What the files show, before a marker is heard. */
export interface Shown {
  readonly evidence: Evidence;
  readonly trainedContextTokens?: number;
  /** Whether a chat template was found: without one, tools and reasoning are not known. */
  readonly hasTemplate: boolean;
}

export interface Settled {
  readonly kind: ModelKind | undefined;
  readonly abilities: readonly Ability[];
  readonly trainedContextTokens?: number;
  readonly aliases: readonly string[];
  readonly marker: NonNullable<FoundModel['marker']>;
  /** The marker as it must be written, when what it says does not hold. */
  readonly rederived?: Json;
}

const ALIAS = /^[\p{L}\p{N}][\p{L}\p{N}._:/-]{0,127}$/u;
const MOST_ALIASES = 16;
const MOST_DESCRIPTION = 500;
const KNOWN = new Set([
  'kind',
  'abilities',
  'trainedContextTokens',
  'aliases',
  'description',
  'base',
  'corrections',
  'of',
]);

/**
 * Compares a marker with the evidence. What the disk cannot say is added; what the files deny is put right, and the
 * reason kept. Without a marker everything is derived.
 */
export function settle(shown: Shown, said: Json | undefined, source: 'beside' | 'sidecar'): Settled {
  const { evidence } = shown;
  if (said === undefined) {
    return {
      kind: evidence.kind,
      abilities: ordered(evidence.abilities),
      ...known(shown.trainedContextTokens),
      aliases: [],
      marker: { source: 'derived', reasons: evidence.reasons },
    };
  }
  const corrections: MarkerCorrection[] = [];
  const reasons = [...evidence.reasons];
  const deny = (fact: string, value: unknown, found: string, reason: string) =>
    corrections.push({ fact, said: shorten(value), found, reason });

  const kind = kindOf(said['kind'], evidence, reasons, deny);
  const abilities = abilitiesOf(said['abilities'], shown, kind, reasons, deny);
  const context = contextOf(said['trainedContextTokens'], shown, reasons, deny);
  const aliases = aliasesOf(said['aliases'], deny);
  const description = textOf(said['description'])?.slice(0, MOST_DESCRIPTION);
  for (const field of Object.keys(said)) {
    if (!KNOWN.has(field)) reasons.push(`berth.json has "${shorten(field)}", which this Berth does not know`);
  }

  const all = [...earlier(said['corrections']), ...corrections].slice(-MOST_ALIASES);
  const rederived: Json | undefined =
    corrections.length === 0
      ? undefined
      : {
          ...said,
          ...(said['kind'] === undefined || kind === undefined ? {} : { kind }),
          ...(said['abilities'] === undefined ? {} : { abilities }),
          ...(said['trainedContextTokens'] === undefined ? {} : { trainedContextTokens: context }),
          ...(said['aliases'] === undefined ? {} : { aliases }),
          corrections: all,
        };
  return {
    kind,
    abilities,
    ...known(context),
    aliases,
    marker: {
      source,
      reasons,
      ...(all.length === 0 ? {} : { corrections: all }),
      ...(description === undefined ? {} : { description }),
    },
    ...(rederived === undefined ? {} : { rederived }),
  };
}

type Deny = (fact: string, said: unknown, found: string, reason: string) => void;

function kindOf(said: unknown, evidence: Evidence, reasons: string[], deny: Deny): ModelKind | undefined {
  if (said === undefined) return evidence.kind;
  const kind = MODEL_KINDS.find((one) => one === said);
  const found = evidence.kind ?? 'none';
  if (kind === undefined) deny('kind', said, found, `it is none of ${MODEL_KINDS.join(', ')}`);
  else if (kind === evidence.kind) return kind;
  else if (evidence.certain) deny('kind', said, found, evidence.reasons[0] ?? 'the files say otherwise');
  else {
    reasons.push(`berth.json says ${kind}, which the files do not deny`);
    return kind;
  }
  return evidence.kind;
}

function abilitiesOf(
  said: unknown,
  { evidence, hasTemplate }: Shown,
  kind: ModelKind | undefined,
  reasons: string[],
  deny: Deny,
): readonly Ability[] {
  // What a template shows is of no use to a model that does not chat.
  const shown = evidence.abilities.filter((a) => kind === 'chat' || (a !== 'tools' && a !== 'reasoning'));
  if (said === undefined) return ordered(shown);
  const added = new Set(shown);
  for (const one of Array.isArray(said) ? (said as readonly unknown[]) : [said]) {
    const ability = ABILITIES.find((a) => a === one);
    if (ability === undefined) deny('abilities', one, 'none', `it is none of ${ABILITIES.join(', ')}`);
    else if (added.has(ability)) continue;
    else {
      const why = whyNot(ability, kind, hasTemplate);
      if (why === undefined) {
        added.add(ability);
        reasons.push(`berth.json adds ${ability}, which the files do not deny`);
      } else deny('abilities', ability, 'none', why);
    }
  }
  return ordered([...added]);
}

function whyNot(ability: Ability, kind: ModelKind | undefined, hasTemplate: boolean): string | undefined {
  switch (ability) {
    case 'tools':
    case 'reasoning':
      if (kind !== 'chat') return `a model for ${kind ?? 'nothing'} has none`;
      return hasTemplate ? 'its chat template shows none' : undefined;
    case 'transcribe':
    case 'speak':
      return kind === 'speech' ? undefined : 'it is no model for speech';
    case 'vision':
    case 'audio':
      return `no projector and no part for ${ability} is among its files`;
    case 'moe':
      return 'no experts are among its weights';
  }
}

function contextOf(said: unknown, shown: Shown, reasons: string[], deny: Deny): number | undefined {
  const found = shown.trainedContextTokens;
  if (said === undefined || said === found) return found;
  const tokens = countOf(said);
  if (tokens === undefined || tokens === 0)
    deny('trainedContextTokens', said, String(found ?? 'unknown'), 'it is no count of tokens');
  else if (found !== undefined)
    deny('trainedContextTokens', said, String(found), 'the files name the context that it was trained with');
  else {
    reasons.push(`berth.json says that it was trained with ${tokens} tokens of context`);
    return tokens;
  }
  return found;
}

function aliasesOf(said: unknown, deny: Deny): readonly string[] {
  if (said === undefined) return [];
  const aliases: string[] = [];
  for (const one of Array.isArray(said) ? (said as readonly unknown[]) : [said]) {
    if (typeof one !== 'string' || !ALIAS.test(one))
      deny('aliases', one, 'none', 'a name has letters, digits, and . _ : / - between them');
    else if (aliases.length >= MOST_ALIASES)
      deny('aliases', one, 'none', `a model has at most ${MOST_ALIASES} names`);
    else aliases.push(one);
  }
  return aliases;
}

function earlier(said: unknown): readonly MarkerCorrection[] {
  if (!Array.isArray(said)) return [];
  return (said as readonly unknown[]).flatMap((one) => {
    if (!isObject(one)) return [];
    const { fact, said: was, found, reason } = one;
    if (typeof fact !== 'string' || typeof was !== 'string' || typeof found !== 'string') return [];
    return [{ fact, said: was, found, reason: shorten(reason) }];
  });
}

const ordered = (abilities: readonly Ability[]): readonly Ability[] =>
  ABILITIES.filter((ability) => abilities.includes(ability));
const known = (tokens: number | undefined) => (tokens === undefined ? {} : { trainedContextTokens: tokens });
const shorten = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value ?? null)).slice(0, 200);
