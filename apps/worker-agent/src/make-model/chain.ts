import { seededRandom } from './random.js';
import type { Vocabulary } from './vocabulary.js';

/** Each pair: after the first token comes the second. */
export type Links = readonly (readonly [from: string, to: string])[];

/** The links that say these tokens one after the other. */
export const linksOf = (tokens: readonly string[]): Links =>
  tokens.slice(1).map((to, i) => [tokens[i] ?? '', to] as const);

/**
 * Weights that make a real engine's text known in advance. The blocks add nothing to the residual stream (their
 * output projections are zero, though all of them is computed), so what reaches the output is the last token's
 * embedding; a token's output row is the sum of the embeddings of the tokens that it follows. The right successor
 * scores about `width`, any other about the square root of it: with 64 or more that is certain at any temperature.
 *
 * What a caller's text is split into (bytes, characters) lies close to one common direction, and is followed by
 * `afterText`: so a completion without a chat template begins the sentence, whatever the prompt.
 * @returns rows of `width` values, one per token: embeddings and output rows.
 */
export function chainWeights(
  vocabulary: Vocabulary,
  links: Links,
  afterText: string,
  width: number,
  seed: number,
): { embeddings: Float32Array; outputs: Float32Array } {
  const random = seededRandom(seed);
  const count = vocabulary.tokens.length;
  const embeddings = new Float32Array(count * width);
  const outputs = new Float32Array(count * width);
  for (let i = 0; i < embeddings.length; i++) embeddings[i] = random.normal();

  const common = Float32Array.from({ length: width }, () => random.normal());
  for (const id of vocabulary.textIds) {
    for (let i = 0; i < width; i++) {
      const at = id * width + i;
      embeddings[at] = (common[i] ?? 0) + 0.25 * (embeddings[at] ?? 0);
    }
  }

  const successors = new Map<number, number>();
  for (const [from, to] of links) {
    const [fromId, toId] = [vocabulary.idOf(from), vocabulary.idOf(to)];
    if (successors.has(fromId)) {
      throw new Error(`The token "${from}" cannot be followed by two tokens: use each word once.`);
    }
    successors.set(fromId, toId);
    addRow(outputs, toId, embeddings.subarray(fromId * width, (fromId + 1) * width));
  }
  const first = vocabulary.idOf(afterText);
  if (vocabulary.textIds.includes(first)) {
    // It lies close to the common direction itself, and would be followed by itself as likely as by its successor.
    throw new Error(
      `The sentence cannot begin with "${afterText}": it is one of the characters that text is split into.`,
    );
  }
  addRow(outputs, first, common);
  return { embeddings, outputs };
}

function addRow(rows: Float32Array, id: number, row: Float32Array): void {
  for (const [i, v] of row.entries()) {
    const at = id * row.length + i;
    rows[at] = (rows[at] ?? 0) + v;
  }
}
