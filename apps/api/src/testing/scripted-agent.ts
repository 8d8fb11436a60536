import { join } from 'node:path';
import { credentials, loadPackageDefinition, Metadata, type ClientDuplexStream } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type { BerthEvent, FleetEvent, PlacementDecidedData, WorkerEvent } from '#domain/events/index.js';
import type { Geometry } from '#domain/geometry.js';
import {
  apiId as toApiId,
  deviceId,
  type ModelKey,
  modelKey,
  type ResidentId,
  type WorkerId,
  workerId,
} from '#domain/ids.js';
import { SlotShares } from '#domain/worker/slot-shares.js';
import { GIB, MIB } from '#domain/units.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { packageRoot } from '#runtime/process-info.js';
import type { FromAgent, FromApi } from '../agents/messages.js';

const RAM = deviceId('ram');

const geometry: Geometry = {
  architecture: 'llama',
  kind: 'chat',
  trainedContextTokens: 8192,
  embeddingLength: 64,
  vocabularyTokens: 1000,
  parameters: 1e6,
  blocks: Array.from({ length: 2 }, () => ({
    alwaysBytes: 100 * MIB,
    expertBytes: 0,
    cache: { kind: 'attention', kvHeads: 2, keyLength: 32, valueLength: 32 } as const,
  })),
  tokenEmbeddingBytes: MIB,
  outputBytes: 0,
  tiedOutput: true,
  otherBytes: 0,
  expertCount: 0,
  expertUsedCount: 0,
  hasChatTemplate: true,
};

export const foundModel = (key: string, kind: FoundModel['kind'] = 'chat'): FoundModel => ({
  modelKey: modelKey(key),
  aliases: [],
  root: 'models',
  path: `${key}.gguf`,
  kind,
  framework: 'gguf',
  artifacts: [
    {
      label: 'F16',
      files: [{ name: `${key}.gguf`, bytes: 201 * MIB }],
      complete: true,
      geometry: { ...geometry, kind },
    },
  ],
});

export interface AgentOptions {
  readonly log: EventLog;
  readonly token: string;
  readonly models: readonly FoundModel[];
  /** The port of the engine that serves a model. */
  readonly portOf: (key: string) => number;
  readonly ramLimitBytes?: number;
  /** Slots that engines have, whatever their contract says. */
  readonly slots?: number;
  /** Called between `LoadStarted` and `ResidentReady`. */
  readonly whileLoading?: (data: PlacementDecidedData) => Promise<void>;
  /** Called when a drained resident's engine would be stopped, with its model. */
  readonly onStopped?: (key: ModelKey) => void;
}

/** A worker agent without engines of its own: it acts on decisions by the book, over scripted engines. */
export class ScriptedAgent {
  readonly id: WorkerId = workerId(newId());
  readonly drained: ResidentId[] = [];
  readonly #o: AgentOptions;
  readonly #lines = new Map<string, { stream: ClientDuplexStream<FromAgent, FromApi>; close: () => void }>();
  readonly #subscriptions: Subscription[] = [];
  readonly #waiting = new Map<ResidentId, () => void>();
  /** Which apis have said that no call of theirs is on a resident that leaves. */
  readonly #acknowledged = new Map<ResidentId, Set<string>>();
  readonly #shares = new SlotShares((api, share) => void this.#lines.get(api)?.stream.write({ share }));
  readonly #beat: NodeJS.Timeout;
  #stopped = false;

  constructor(options: AgentOptions) {
    this.#o = options;
    this.#beat = setInterval(() => this.say({ heartbeat: { at: new Date().toISOString() } }), 2000);
  }

  async start(): Promise<this> {
    const { models, ramLimitBytes } = this.#o;
    await this.register();
    await this.fact({
      type: 'CapacityMeasured',
      data: { devices: [], ramBytes: 4 * GIB, swapBytes: 0, physicalCores: 4, drives: [] },
    });
    await this.fact({ type: 'ForeignUseChanged', data: { deviceId: RAM, bytes: 0, processes: [] } });
    if (ramLimitBytes !== undefined) {
      await this.fact({
        type: 'LimitSet',
        data: { resource: RAM, tier: 'designation', value: ramLimitBytes, by: 'test' },
      });
    }
    for (const model of models) {
      await this.#append(streams.catalog(this.id), { type: 'ModelFound', data: model });
    }
    this.#subscriptions.push(
      this.#o.log.subscribe<WorkerEvent>(streams.worker(this.id), {
        onEvent: ({ event }) => {
          if (event.type === 'PlacementDecided') void this.#act(event.data);
        },
      }),
      this.#o.log.subscribe<FleetEvent>(streams.apis, {
        onEvent: ({ event }) => {
          if (event.type === 'ApiStarted') this.#dial(event.data.apiId, event.data.agentLine);
          else this.#hangUp(event.data.apiId);
        },
      }),
    );
    return this;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#beat);
    for (const id of [...this.#lines.keys()]) this.#hangUp(id);
    await Promise.all(this.#subscriptions.map((subscription) => subscription.stop()));
  }

  /** As an agent that starts; the same again says that its engine can do more. */
  register(...more: readonly string[]): Promise<void> {
    const capabilities = ['chat', 'embedding', ...more];
    return this.fact({
      type: 'WorkerRegistered',
      data: {
        name: 'scripted',
        host: 'here',
        agentVersion: '0',
        os: 'test',
        engines: [{ kind: 'built-in', version: '1', build: '1', capabilities }],
        dataAddress: '127.0.0.1',
        bootId: 'boot',
      },
    });
  }

  fact(event: WorkerEvent): Promise<void> {
    return this.#append(streams.worker(this.id), event);
  }

  say(message: FromAgent): void {
    for (const { stream } of this.#lines.values()) stream.write(message);
  }

  get lines(): number {
    return this.#lines.size;
  }

  hangUpAll(): void {
    for (const id of [...this.#lines.keys()]) this.#hangUp(id);
  }

  async #act(data: PlacementDecidedData): Promise<void> {
    for (const { residentId, modelKey: key } of data.victims) {
      await this.#drain(residentId);
      await this.fact({
        type: 'EvictionStarted',
        data: { residentId, decisionId: data.decisionId, reason: 'room' },
      });
      this.#o.onStopped?.(key);
      await this.fact({
        type: 'ResidentEvicted',
        data: { residentId, decisionId: data.decisionId, reason: 'room', freed: [], seconds: 0 },
      });
    }
    const { residentId, decisionId, artifact, contract } = data;
    await this.fact({
      type: 'LoadStarted',
      data: {
        residentId,
        decisionId,
        modelKey: data.modelKey,
        artifact,
        engine: { ...contract.engine, version: '1' },
        arguments: [],
        port: this.#o.portOf(data.modelKey),
        pid: 1,
      },
    });
    await this.#o.whileLoading?.(data);
    if (this.#stopped) return;
    const at = new Date().toISOString();
    await this.fact({
      type: 'ResidentReady',
      data: {
        residentId,
        stagedAt: at,
        loadedAt: at,
        computesOn: [RAM],
        kind: contract.kind,
        measured: {
          byDevice: [
            { deviceId: RAM, weightsBytes: 201 * MIB, kvBytes: MIB, computeBytes: 0, processBytes: 0 },
          ],
          hostAnonymousBytes: 202 * MIB,
          hostResidentBytes: 202 * MIB,
          contextTokens: contract.contextTokens,
          slots: this.#o.slots ?? contract.slots,
        },
      },
    });
  }

  #drain(id: ResidentId): Promise<void> {
    if (this.drained.includes(id)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  /** Drained is what every connected api has acknowledged. */
  #settleDrain(id: ResidentId): void {
    const by = this.#acknowledged.get(id);
    if (!by || this.drained.includes(id) || [...this.#lines.keys()].some((api) => !by.has(api))) return;
    this.drained.push(id);
    this.#waiting.get(id)?.();
  }

  #dial(apiId: string, address: string): void {
    const definition = loadSync(join(packageRoot(), 'schema', 'agent-line.proto'), {
      keepCase: false,
      longs: Number,
      defaults: false,
      oneofs: true,
    });
    const loaded = loadPackageDefinition(definition) as unknown as {
      berth: { agents: { AgentLine: LineClientConstructor } };
    };
    const client = new loaded.berth.agents.AgentLine(address, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('berth-token', this.#o.token);
    const stream = client.Session(metadata);
    this.#lines.set(apiId, { stream, close: () => client.close() });
    stream.on('error', () => this.#hangUp(apiId));
    stream.on('data', (message: FromApi) => {
      if (message.drained) {
        const id = message.drained.residentId as ResidentId;
        this.#acknowledged.set(id, (this.#acknowledged.get(id) ?? new Set()).add(apiId));
        this.#settleDrain(id);
      }
      if (message.welcome) this.#neighboursChanged();
      if (message.slots) this.#shares.said(toApiId(apiId), message.slots);
      if (message.project) {
        stream.write({ projected: { requestId: message.project.requestId, ok: false, error: 'scripted' } });
      }
    });
    stream.write({ hello: { workerId: this.id, name: 'scripted', bootId: 'boot', agentVersion: '0' } });
  }

  #hangUp(apiId: string): void {
    const line = this.#lines.get(apiId);
    if (!line) return;
    this.#lines.delete(apiId);
    line.stream.removeAllListeners();
    line.stream.on('error', () => undefined);
    line.stream.cancel();
    line.close();
    this.#shares.left(toApiId(apiId));
    this.#neighboursChanged();
    if (!this.#stopped) for (const id of this.#waiting.keys()) this.#settleDrain(id);
  }

  #neighboursChanged(): void {
    this.say({ neighbours: { apis: this.#lines.size } });
  }

  async #append(stream: string, event: BerthEvent): Promise<void> {
    const outcome = await this.#o.log.append(
      stream,
      [{ id: newId(), event, cause: { correlationId: this.id, causationId: this.id } }],
      'any',
    );
    if (!outcome.ok && !this.#stopped) throw new Error(`${event.type}: ${JSON.stringify(outcome.error)}`);
  }
}

type LineClientConstructor = new (
  address: string,
  creds: ReturnType<typeof credentials.createInsecure>,
) => { Session(metadata: Metadata): ClientDuplexStream<FromAgent, FromApi>; close(): void };
