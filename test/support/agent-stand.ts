import { fork, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import type { BerthEventType, DataOf, Recorded, WorkerEvent } from '#domain/events/index.js';
import { decisionId, type DeviceId, modelKey, RAM, residentId, type WorkerId } from '#domain/ids.js';
import type { Contract, EngineKind } from '#domain/placement-terms.js';
import { aContract, aDecision } from '#domain/testing/given.js';
import { GIB, MIB } from '#domain/units.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { newId } from '#runtime/ids.js';
import { packageRoot } from '#runtime/process-info.js';
import { markedProcesses } from '../../apps/worker-agent/src/engines/engine-family.js';
import { cleanEnv, logsOf, removeFolder, tempFolder, writeModels, type StackOptions } from './stack.js';
import { waitFor } from './wait.js';

export interface Placed {
  readonly residentId: ReturnType<typeof residentId>;
  readonly decisionId: ReturnType<typeof decisionId>;
}

interface AgentOver {
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

interface DecideOver {
  readonly victims?: readonly Placed[];
  readonly contextTokens?: number;
  /** The rest of what the engine is started with. */
  readonly contract?: Partial<Contract>;
  readonly artifact?: string;
  readonly engine?: EngineKind;
  readonly needBytes?: number;
  readonly needOn?: DeviceId;
  readonly validForMs?: number;
}

/** The agent alone, in a process of its own, over a real log and with real engines; the test decides as an api would. */
export class AgentStand {
  readonly home = tempFolder();
  node!: EmbeddedNode;
  log!: EventLog;
  agent: ChildProcess | undefined;
  worker!: WorkerId;

  /** @param env what every agent of the stand sees beside the usual. */
  constructor(private readonly env: Readonly<Record<string, string>> = {}) {}

  async start(models: NonNullable<StackOptions['models']>): Promise<this> {
    mkdirSync(join(this.home, 'models'), { recursive: true });
    await writeModels(this.home, models);
    this.node = await startEmbeddedNode();
    this.log = openEventLog({ url: this.node.url, by: 'test', now: () => Date.now() });
    await this.startAgent();
    return this;
  }

  async startAgent(over: AgentOver = {}): Promise<void> {
    await this.endAgent();
    const { agent, worker } = await this.forkAgent(over);
    this.agent = agent;
    this.worker = worker;
  }

  /** An agent that is not the stand's: the caller ends it. */
  async forkAgent(over: AgentOver = {}): Promise<{ agent: ChildProcess; worker: WorkerId }> {
    const agent = fork(join(packageRoot(), 'dist/apps/worker-agent/src/main.js'), [], {
      env: {
        ...cleanEnv(this.home),
        BERTH_HOME: this.home,
        BERTH_MODELS: join(this.home, 'models'),
        EVENTSTORE_URL: this.node.url,
        ...this.env,
        ...over.env,
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [...(over.execArgv ?? [])],
    });
    const [message] = (await once(agent, 'message')) as [
      { berth: string; message?: string; details: { workerId: WorkerId } },
    ];
    if (message.berth !== 'ready')
      throw new Error(`the agent did not start: ${String(message.message)} ${logsOf(this.home)}`);
    return { agent, worker: message.details.workerId };
  }

  /** In order (SIGTERM), or as a power cut would (SIGKILL). */
  async endAgent(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const { agent } = this;
    if (agent === undefined || agent.exitCode !== null || agent.signalCode !== null) return;
    const gone = once(agent, 'exit');
    agent.kill(signal);
    await gone;
  }

  /** When it ends by itself. */
  async agentGone(): Promise<void> {
    if (this.agent) await once(this.agent, 'exit');
  }

  /** Ends everything. @returns processes of engines that were left behind, which are ended too. */
  async stop(): Promise<readonly number[]> {
    await this.endAgent();
    const left = this.engines();
    for (const pid of left) process.kill(pid, 'SIGKILL');
    await this.log.close();
    await this.node.stop();
    removeFolder(this.home);
    return left;
  }

  /** Every process of an engine of this home, or forked by one, whether or not the agent knows of it. */
  engines(): readonly number[] {
    return markedProcesses(join(this.home, 'engines')).map(({ pid }) => pid);
  }

  fileOf(model: string): string {
    return join(this.home, 'models', ...model.split('/'), `${model.split('/').at(-1) ?? model}-F16.gguf`);
  }

  async all(): Promise<readonly Recorded<WorkerEvent>[]> {
    const events: Recorded<WorkerEvent>[] = [];
    for await (const e of this.log.readForwards<WorkerEvent>(streams.worker(this.worker))) events.push(e);
    return events;
  }

  /** As every api and the agent itself know the worker. */
  state(): Promise<WorkerState> {
    return this.log.fold(streams.worker(this.worker), initialWorker(this.worker), evolveWorker);
  }

  async of<T extends BerthEventType>(type: T): Promise<DataOf<T>[]> {
    return (await this.all()).flatMap((e) =>
      e.event.type === (type as string) ? [e.event.data as DataOf<T>] : [],
    );
  }

  until<T extends BerthEventType>(type: T, holds: (data: DataOf<T>) => boolean, deadlineMs = 120_000) {
    return waitFor(type, deadlineMs, async () => (await this.of(type)).find(holds));
  }

  ready(placed: Placed) {
    return this.until('ResidentReady', (e) => e.residentId === placed.residentId);
  }

  started(placed: Placed) {
    return this.until('LoadStarted', (e) => e.residentId === placed.residentId);
  }

  /** What a resident's stream says of its life, in order. */
  async lifeOf(placed: Placed): Promise<readonly string[]> {
    return (await this.all()).flatMap(({ event }) =>
      'residentId' in event.data && event.data.residentId === placed.residentId ? [event.type] : [],
    );
  }

  async decide(model: string, over: DecideOver = {}): Promise<Placed> {
    const { engine = 'built-in' } = over;
    const { engines = [] } = (await this.of('WorkerRegistered')).at(-1) ?? {};
    const placed: Placed = { residentId: residentId(newId()), decisionId: decisionId(newId()) };
    const data = aDecision(model, {
      ...placed,
      artifact: over.artifact ?? 'F16',
      contract: aContract({
        engine: { kind: engine, build: engines.find(({ kind }) => kind === engine)?.build ?? '' },
        contextTokens: over.contextTokens ?? 2048,
        ...over.contract,
      }),
      need: [
        { deviceId: over.needOn ?? RAM, term: 'weights', bytes: over.needBytes ?? MIB, basis: 'header' },
      ],
      room: [{ deviceId: over.needOn ?? RAM, bytes: 100 * GIB }],
      victims: (over.victims ?? []).map((v) => ({
        residentId: v.residentId,
        modelKey: modelKey('victim'),
        lossSeconds: 0,
        frees: [],
      })),
      now: new Date().toISOString(),
      validUntil: new Date(Date.now() + (over.validForMs ?? 60_000)).toISOString(),
    });
    const cause = { correlationId: placed.decisionId, causationId: placed.decisionId };
    const event: WorkerEvent = { type: 'PlacementDecided', data };
    const outcome = await this.log.append<WorkerEvent>(
      streams.worker(this.worker),
      [{ id: newId(), cause, event }],
      'any',
    );
    if (!outcome.ok) throw new Error(`The log did not take the decision: ${outcome.error.kind}`);
    return placed;
  }
}
