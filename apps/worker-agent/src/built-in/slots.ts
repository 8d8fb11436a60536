import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp';

export interface Slot {
  readonly sequence: LlamaContextSequence;
  /** Gives the slot to the next in the queue. Called once. */
  release(): void;
}

interface Waiting {
  readonly tokens: readonly Token[];
  readonly resolve: (slot: Slot) => void;
}

/**
 * The serve slots of a context, and the requests that wait for one, in order of arrival. A free slot whose cache
 * begins like the prompt is preferred, so that a conversation finds what it left.
 */
export class Slots {
  readonly #free: LlamaContextSequence[];
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(context: LlamaContext, count: number) {
    // Checkpoints would take memory beyond the plan; models that need them start each request from an empty cache.
    this.#free = Array.from({ length: count }, () =>
      context.getSequence({ checkpoints: { max: 1, interval: false } }),
    );
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** @throws the signal's reason, when the client left before its turn. */
  take(tokens: readonly Token[], signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    if (this.#free.length > 0) return Promise.resolve(this.#hand(tokens));
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        const at = this.#waiting.indexOf(waiting);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason as Error);
      };
      const waiting: Waiting = {
        tokens,
        resolve: (slot) => {
          signal.removeEventListener('abort', onAbort);
          resolve(slot);
        },
      };
      this.#waiting.push(waiting);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #hand(tokens: readonly Token[]): Slot {
    let best = 0;
    let bestLength = -1;
    for (const [at, sequence] of this.#free.entries()) {
      const length = sequence.compareContextTokens([...tokens]).firstDifferentIndex;
      if (length > bestLength) [best, bestLength] = [at, length];
    }
    const [sequence] = this.#free.splice(best, 1);
    if (!sequence) throw new Error('A slot was asked for while none was free.');
    this.#taken += 1;
    let released = false;
    return {
      sequence,
      release: () => {
        if (released) return;
        released = true;
        this.#taken -= 1;
        this.#free.push(sequence);
        const next = this.#waiting.shift();
        next?.resolve(this.#hand(next.tokens));
      },
    };
  }
}
