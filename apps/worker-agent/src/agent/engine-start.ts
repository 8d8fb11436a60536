import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { ModelKey } from '#domain/ids.js';
import type { OpenDecision } from '#domain/worker/state.js';
import { LoadFailure, type LoadProgress, PortTaken, type ReadyFacts, type RunningEngine } from '../ports.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter, Why } from './facts.js';

type Decided = OpenDecision['data'];

/** Ports that an engine is started on, one after the other, while other programs take them. */
const MOST_PORTS = 3;

export interface EngineStartsOptions {
  readonly engines: RunningEngines;
  readonly facts: FactWriter;
  readonly filesOf: (modelKey: ModelKey, artifact: string) => readonly string[] | undefined;
  /** A process was spawned for a resident: its first, or another on another port. */
  readonly onStarted: (engine: RunningEngine) => void;
  readonly log: Logger;
}

/**
 * The processes of one load. Each is told to the log as soon as it is there, before it is waited for: whoever comes after
 * this agent can explain every engine that runs, and what the log says of a load's time has the start of its program in it.
 */
export class EngineStarts {
  readonly #o: EngineStartsOptions;

  constructor(options: EngineStartsOptions) {
    this.#o = options;
  }

  /** @throws LoadFailure when its files, its engine or what the system gives are missing. */
  async launch({ residentId, modelKey, artifact, contract }: Decided): Promise<RunningEngine> {
    const files = this.#o.filesOf(modelKey, artifact);
    if (!files) {
      const message = `The files of ${modelKey} ${artifact} are not on this machine any more.`;
      throw new LoadFailure('bad-artifact', message, '');
    }
    const driver = this.#o.engines.driver(contract.engine.kind);
    if (!driver) {
      const message = `The engine ${contract.engine.kind} is not on this machine any more.`;
      throw new LoadFailure('incompatible-engine', message, '');
    }
    const engine = await driver.launch({ residentId, modelKey, artifact, files, contract });
    this.#o.onStarted(engine);
    return engine;
  }

  /** Says that the load began, with its first process. Saying it again writes nothing. */
  async say(engine: RunningEngine, data: Decided, why: Why): Promise<void> {
    const { residentId, decisionId, modelKey, artifact, contract } = data;
    await this.#o.facts.worker(
      derivedId('LoadStarted', residentId),
      {
        type: 'LoadStarted',
        data: {
          residentId,
          decisionId,
          modelKey,
          artifact,
          engine: engine.engine,
          arguments: engine.arguments,
          port: engine.port,
          ...processOf(engine),
          ...(contract.cores ? { cores: contract.cores } : {}),
        },
      },
      why,
    );
  }

  /** Says that another process took the place of the one told before, which could not have its port. */
  async sayAgain(engine: RunningEngine, why: Why): Promise<void> {
    const { residentId, port, pid } = engine;
    await this.#o.facts.worker(
      derivedId('LoadRestarted', residentId, `${port} ${pid}`),
      { type: 'LoadRestarted', data: { residentId, port, ...processOf(engine), cause: 'port-taken' } },
      why,
    );
  }

  /**
   * Waits until the engine serves. When another program took its port between the choice and the bind, it is started again
   * on another.
   * @throws LoadFailure, also when that happens again and again; no process is left then.
   */
  async untilReady(
    first: RunningEngine,
    data: Decided,
    why: Why,
    signal: AbortSignal,
    onProgress: (progress: LoadProgress) => void,
  ): Promise<{ readonly engine: RunningEngine; readonly facts: ReadyFacts }> {
    const taken: number[] = [];
    for (let engine = first; ;) {
      try {
        return { engine, facts: await engine.ready(onProgress, signal) };
      } catch (error) {
        if (!(error instanceof PortTaken) || signal.aborted) throw error;
        taken.push(error.port);
        if (taken.length === MOST_PORTS) throw allTaken(taken, error.logTail);
      }
      this.#o.log.warn(
        { residentId: engine.residentId, port: engine.port },
        'another program took the port of an engine before it did: it is started on another',
      );
      // Its files are removed at its end: those of the next one bear the same name.
      await engine.exited;
      engine = await this.launch(data);
      await this.sayAgain(engine, why);
    }
  }
}

const processOf = ({ pid, pidStartTicks }: RunningEngine) => ({
  pid,
  ...(pidStartTicks === undefined ? {} : { pidStartTicks }),
});

const allTaken = (ports: readonly number[], logTail: string): LoadFailure =>
  new LoadFailure(
    'exited',
    `The ports ${ports.join(', ')} were each taken by another program before the engine had them.`,
    logTail,
  );
