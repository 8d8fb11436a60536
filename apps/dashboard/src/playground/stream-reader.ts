/** What a stream of chat completions says, piece by piece. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  /** A comment of Berth's while nothing can come yet: `loading quay/first 43%`. */
  | { readonly kind: 'waiting'; readonly text: string }
  | { readonly kind: 'usage'; readonly promptTokens: number; readonly outputTokens: number }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'done' };

interface Chunk {
  readonly error?: { readonly message?: string };
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null };
  }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
}

/** Reads server-sent events out of text that comes cut anywhere. */
export class StreamReader {
  #rest = '';

  take(text: string): readonly Piece[] {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop() ?? '';
    return lines.flatMap(piecesOf);
  }
}

function piecesOf(line: string): readonly Piece[] {
  if (line.startsWith(':')) {
    const text = line.slice(1).trim();
    return text === '' ? [] : [{ kind: 'waiting', text }];
  }
  if (!line.startsWith('data:')) return [];
  const data = line.slice('data:'.length).trim();
  if (data === '[DONE]') return [{ kind: 'done' }];
  return chunkPieces(JSON.parse(data) as Chunk);
}

function chunkPieces({ error, choices, usage }: Chunk): readonly Piece[] {
  if (error) return [{ kind: 'failed', message: error.message ?? 'The stream ended with an error.' }];
  const { content, reasoning_content: reasoning } = choices?.[0]?.delta ?? {};
  return [
    ...(reasoning ? [{ kind: 'reasoning', text: reasoning } as const] : []),
    ...(content ? [{ kind: 'text', text: content } as const] : []),
    ...(usage
      ? [
          {
            kind: 'usage',
            promptTokens: usage.prompt_tokens ?? 0,
            outputTokens: usage.completion_tokens ?? 0,
          } as const,
        ]
      : []),
  ];
}
