import WebSocket, { type ClientOptions } from 'ws';
import type { LiveChange, LiveFrame, LiveItems, LiveSubscribe, LiveTopic } from '#domain/wire/index.js';
import { eventually } from './stand.js';

/** A client of `/live` that keeps everything it hears. */
export class LiveListener {
  readonly frames: LiveFrame[] = [];
  readonly socket: WebSocket;
  closed = false;
  refusedWith: number | undefined;

  constructor(url: string, options: ClientOptions = {}, protocols: readonly string[] = []) {
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/live`, [...protocols], options);
    this.socket.on('message', (data: Buffer) => this.frames.push(JSON.parse(data.toString()) as LiveFrame));
    this.socket.on('close', () => (this.closed = true));
    this.socket.on('unexpected-response', (req, res) => {
      this.refusedWith = res.statusCode;
      req.destroy();
    });
    // A broken connection is part of what is tested.
    this.socket.on('error', () => undefined);
  }

  async subscribe(subscribe: LiveSubscribe['subscribe'], since?: string): Promise<this> {
    await eventually('the connection to /live', () => this.socket.readyState === WebSocket.OPEN || undefined);
    this.socket.send(JSON.stringify({ subscribe, ...(since === undefined ? {} : { since }) }));
    return this;
  }

  get changes(): readonly LiveChange[] {
    return this.frames.flatMap((frame) => (frame.type === 'changes' ? frame.changes : []));
  }

  /** Where it would go on: of the last frame that had a position. */
  get position(): string | undefined {
    return this.frames.flatMap((frame) => ('position' in frame ? [frame.position] : [])).at(-1);
  }

  hears<F extends LiveFrame>(what: string, is: (frame: LiveFrame) => frame is F): Promise<F> {
    return eventually(what, () => this.frames.find(is));
  }

  snapshot<T extends LiveTopic>(topic: T) {
    return this.hears(`the snapshot of ${topic}`, (frame) => isSnapshot(frame, topic));
  }

  heardOf<T extends LiveTopic>(
    topic: T,
    what: string,
    is: (item: LiveItems[T]) => boolean,
  ): Promise<LiveChange> {
    return eventually(what, () =>
      this.changes.find((change) => change.topic === topic && is(change.item as LiveItems[T])),
    );
  }

  async leave(): Promise<void> {
    this.socket.terminate();
    await eventually('the end of the connection', () => this.closed || undefined);
  }
}

const isSnapshot = <T extends LiveTopic>(
  frame: LiveFrame,
  topic: T,
): frame is Extract<LiveFrame, { type: 'snapshot'; topic: T }> =>
  frame.type === 'snapshot' && frame.topic === topic;
