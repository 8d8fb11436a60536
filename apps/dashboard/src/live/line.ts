import type { LiveFrame, LiveSubscribe, LiveTopic, MomentTopic } from '#domain/wire/index.js';

/** What the page says about its connection. */
export type LineStatus =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** Gone; tried again at `retryAtMs`. With a sentence where the server gave one. */
  | { readonly kind: 'lost'; readonly sinceMs: number; readonly retryAtMs: number; readonly why?: string };

/** The part of a WebSocket that is used. */
export interface Socket {
  onopen: (() => void) | null;
  onmessage: ((message: { readonly data: unknown }) => void) | null;
  onclose: ((end: { readonly code: number; readonly reason: string }) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface LineParts {
  readonly open: () => Socket;
  readonly topics: readonly (LiveTopic | MomentTopic)[];
  readonly onFrame: (frame: LiveFrame) => void;
  readonly onStatus: (status: LineStatus) => void;
  /** The last position that was folded. */
  readonly since: () => string | undefined;
  readonly clock: {
    now(): number;
    after(ms: number, run: () => void): () => void;
  };
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 8000;
/** The server beats every 10 s: two that are missing mean that the line is dead, whatever the socket says. */
const SILENCE_MS = 25_000;

/**
 * Keeps one subscription to `/live`: connects, resumes where it was, notices silence, and tries again. A line that was cut
 * resumes with `since` and misses nothing; one that lagged does so on the same socket.
 */
export class Line {
  readonly #parts: LineParts;
  #socket: Socket | undefined;
  #tries = 0;
  #lostAtMs: number | undefined;
  #cancelSilence: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;
  #stopped = true;

  constructor(parts: LineParts) {
    this.#parts = parts;
  }

  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#parts.onStatus({ kind: 'connecting' });
    this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    this.#drop();
  }

  /** At once instead of after the wait: the network is back, or the reader asks for it. */
  retry(): void {
    if (this.#stopped || this.#socket) return;
    this.#cancelRetry?.();
    this.#connect();
  }

  #connect(): void {
    const socket = this.#parts.open();
    this.#socket = socket;
    socket.onopen = () => this.#subscribe(socket);
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#hear(socket, data);
    };
    socket.onclose = () => {
      if (socket === this.#socket) this.#lost();
    };
    this.#listenForSilence();
  }

  #subscribe(socket: Socket): void {
    const since = this.#parts.since();
    const wish: LiveSubscribe = { subscribe: this.#parts.topics, ...(since === undefined ? {} : { since }) };
    socket.send(JSON.stringify(wish));
  }

  #hear(socket: Socket, data: unknown): void {
    this.#listenForSilence();
    const frame = JSON.parse(String(data)) as LiveFrame;
    if (frame.type === 'error') {
      this.#lost(frame.message);
      return;
    }
    this.#tries = 0;
    this.#lostAtMs = undefined;
    this.#parts.onFrame(frame);
    this.#parts.onStatus({ kind: 'live' });
    if (frame.type === 'lagged') this.#subscribe(socket);
  }

  #lost(why?: string): void {
    this.#drop();
    if (this.#stopped) return;
    const { clock, onStatus } = this.#parts;
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#tries);
    this.#tries += 1;
    this.#lostAtMs ??= clock.now();
    onStatus({
      kind: 'lost',
      sinceMs: this.#lostAtMs,
      retryAtMs: clock.now() + wait,
      ...(why === undefined ? {} : { why }),
    });
    this.#cancelRetry = clock.after(wait, () => this.#connect());
  }

  #listenForSilence(): void {
    this.#cancelSilence?.();
    this.#cancelSilence = this.#parts.clock.after(SILENCE_MS, () => this.#lost());
  }

  #drop(): void {
    this.#cancelSilence?.();
    this.#cancelRetry?.();
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }
}
