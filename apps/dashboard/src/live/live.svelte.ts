import type { LiveTopic, MomentTopic } from '#domain/wire/index.js';
import { get, urlOf } from '../api/client.js';
import { session } from '../api/session.svelte.js';
import { fold, type LiveState, NOTHING, sinceOf } from './fold.js';
import { Line, type LineStatus, type Socket } from './line.js';

const TOPICS: readonly (LiveTopic | MomentTopic)[] = [
  'residents',
  'devices',
  'calls',
  'decisions',
  'evictions',
  'pulls',
  'operator',
  'models',
  'queue',
  'activity',
  'readings',
];
/** A page cannot set headers on a WebSocket: the key goes as one of the protocols that it names. */
const PROTOCOL = 'berth.live';
const KEY_PROTOCOL = 'berth.key.';

/** What `/live` tells, for every component to read. */
class Live {
  state = $state.raw<LiveState>(NOTHING);
  status = $state.raw<LineStatus>({ kind: 'connecting' });
  readonly #line = new Line({
    open: openSocket,
    topics: TOPICS,
    onFrame: (frame) => (this.state = fold(this.state, frame)),
    onStatus: (status) => this.#became(status),
    since: () => sinceOf(this.state, TOPICS),
    clock: { now: Date.now, after },
  });

  start(): void {
    this.#line.start();
    addEventListener('online', () => this.#line.retry());
  }

  /** After somebody signed in or out: what was told to another does not stay. */
  restart(): void {
    this.#line.stop();
    this.state = NOTHING;
    this.#line.start();
  }

  retry(): void {
    this.#line.retry();
  }

  #became(status: LineStatus): void {
    if (status.kind !== this.status.kind || status.kind === 'lost') this.status = status;
    if (status.kind === 'lost') void this.#findOutWhy();
  }

  /** A browser does not tell why a WebSocket was refused; the management API does, and asks for the key. */
  async #findOutWhy(): Promise<void> {
    await get('admin/residents', { limit: 1 }).catch(() => undefined);
    if (session.refusal !== undefined) this.#line.stop();
  }
}

function openSocket(): Socket {
  const url = urlOf('live').replace(/^http/, 'ws');
  const protocols = session.key === undefined ? [PROTOCOL] : [PROTOCOL, KEY_PROTOCOL + session.key];
  const socket = new WebSocket(url, protocols);
  const line: Socket = {
    onopen: null,
    onmessage: null,
    onclose: null,
    send: (text) => socket.send(text),
    close: () => socket.close(),
  };
  socket.onopen = () => line.onopen?.();
  socket.onmessage = (message) => line.onmessage?.({ data: message.data as unknown });
  socket.onclose = ({ code, reason }) => line.onclose?.({ code, reason });
  return line;
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

export const live = new Live();
