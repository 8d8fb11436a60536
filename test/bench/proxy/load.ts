import { connect, type Socket } from 'node:net';
import { HttpCutter } from './http-cutter.js';

export interface Target {
  readonly name: string;
  readonly port: number;
  /** Of the proxy; undefined for the engine itself. */
  readonly pid: number | undefined;
}

export const PATH = '/v1/chat/completions';

export const requestOf = (port: number, body: string): Buffer =>
  Buffer.from(
    `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

/** One kept-alive connection, one call at a time, without a client library in between. */
export class Caller {
  readonly socket: Socket;
  readonly #cutter = new HttpCutter();
  #settle: ((answer: Buffer) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;
  onChunk: ((chunk: Buffer) => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.onChunk?.(chunk);
      for (const answer of this.#cutter.push(chunk)) this.#settle?.(answer);
    });
    socket.on('error', (error) => this.#fail?.(error));
    socket.on('close', () => this.#fail?.(new Error('the connection was closed')));
  }

  static open(port: number): Promise<Caller> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Caller(socket));
      });
    });
  }

  call(request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#settle = (answer) => {
        if (answer.toString('latin1', 9, 12) === '200') resolve(answer);
        else reject(new Error(`it answered ${answer.toString('utf8', 0, 400)}`));
      };
      this.socket.write(request);
    });
  }
}

/** Calls over every connection, each sending its next when the last was answered. @returns latencies in ms. */
export async function drive(
  callers: readonly Caller[],
  request: Buffer,
  ms: number,
): Promise<{ latencies: number[]; elapsedMs: number }> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + ms;
  const one = async (caller: Caller) => {
    for (let sentAt = performance.now(); sentAt < until; sentAt = performance.now()) {
      await caller.call(request);
      latencies.push(performance.now() - sentAt);
    }
  };
  await Promise.all(callers.map(one));
  return { latencies, elapsedMs: performance.now() - startedAt };
}
