import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { CallEvent, CallEventData } from '#domain/events/call-events.js';
import { modelKey } from '#domain/ids.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import type { Running } from '#runtime/lifecycle.js';
import { agentLineToken } from '#runtime/secrets.js';
import { startApi } from '../api.js';
import { foundModel, ScriptedAgent, type AgentOptions } from './scripted-agent.js';

const WITHIN_MS = 20_000;

/** Polls a fact until it is there. @throws with the last value when it never comes. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  withinMs = WITHIN_MS,
): Promise<T> {
  const until = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > until) throw new Error(`It never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export interface Stand {
  readonly home: string;
  readonly node: EmbeddedNode;
  readonly log: EventLog;
  readonly agent: ScriptedAgent;
  readonly url: string;
  readonly port: number;
  /** The end of a call, once it stands in the log. */
  finished(key: string, callId: string): Promise<CallEventData<'CallFinished'>>;
  callEvents(key: string): Promise<readonly CallEvent[]>;
  /** Another api on the same log and home. */
  startAnother(): Promise<Running>;
  stop(): Promise<void>;
}

export interface StandOptions {
  readonly models: readonly string[];
  readonly portOf: AgentOptions['portOf'];
  readonly ramLimitBytes?: number;
  /** Slots that engines have, whatever their contract says. */
  readonly slots?: number;
  readonly whileLoading?: NonNullable<AgentOptions['whileLoading']>;
  readonly spoolMaxBytes?: number;
  /** Takes every line that the api logs, down to the finest. */
  readonly onLogLine?: (line: string) => void;
}

/** A real event node and a real api in this process, with an agent and engines that do as the test says. */
export async function startStand(options: StandOptions): Promise<Stand> {
  const home = mkdtempSync(join(tmpdir(), 'berth-api-'));
  const node = await startEmbeddedNode();
  const log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  const { models, onLogLine, spoolMaxBytes, ...rest } = options;
  const agent = await new ScriptedAgent({
    log,
    token: agentLineToken(home),
    models: models.map((key) => foundModel(key, key.startsWith('embed') ? 'embedding' : 'chat')),
    ...rest,
  }).start();
  const config = {
    home,
    host: '127.0.0.1',
    port: 0,
    models: home,
    eventstoreUrl: node.url,
    ...(spoolMaxBytes === undefined ? {} : { spoolMaxBytes }),
  };
  const logger = onLogLine
    ? pino({ level: 'trace' }, { write: onLogLine })
    : pino({ level: process.env['BERTH_LOG'] ?? 'silent' });
  const apis: Running[] = [];
  const startAnother = async () => {
    const api = await startApi(config, logger);
    await api.rest?.();
    apis.push(api);
    return api;
  };
  const api = await startAnother();
  const callEvents = async (key: string) => {
    const events: CallEvent[] = [];
    for await (const recorded of log.readForwards<CallEvent>(streams.calls(modelKey(key)))) {
      events.push(recorded.event);
    }
    return events;
  };
  return {
    home,
    node,
    log,
    agent,
    url: String(api.details['url']),
    port: Number(api.details['port']),
    callEvents,
    finished: (key, callId) =>
      eventually(`the end of call ${callId}`, async () => {
        for (const event of await callEvents(key)) {
          if (event.type === 'CallFinished' && event.data.callId === callId) return event.data;
        }
        return undefined;
      }),
    startAnother,
    stop: async () => {
      for (const running of apis) await running.stop('signal');
      await agent.stop();
      await log.close();
      await node.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A plain socket: says what it is told and keeps what it hears. */
export class RawSocket {
  heard = '';
  closed = false;
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (chunk: Buffer) => {
      this.heard += chunk.toString('latin1');
    });
    this.socket.on('close', () => {
      this.closed = true;
    });
    // A destroyed socket is part of what is tested.
    this.socket.on('error', () => undefined);
  }

  send(text: string | Buffer): void {
    this.socket.write(text);
  }

  hears(text: string | RegExp, withinMs?: number): Promise<string> {
    const look = () => {
      const found = typeof text === 'string' ? this.heard.includes(text) : text.test(this.heard);
      return found ? this.heard : undefined;
    };
    return eventually(`"${String(text)}" over the wire, after ${this.heard.slice(-500)}`, look, withinMs);
  }

  ends(): Promise<string> {
    return eventually('the end of the connection', () => (this.closed ? this.heard : undefined));
  }
}

/** A promise that a test settles when it likes. */
export function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

export const post = (path: string, body: string, headers: readonly string[] = []): string =>
  [
    `POST ${path} HTTP/1.1`,
    'host: localhost',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
    '',
    body,
  ].join('\r\n');
