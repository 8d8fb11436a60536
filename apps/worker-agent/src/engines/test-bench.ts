import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelKey, residentId } from '#domain/ids.js';
import type { Contract } from '#domain/placement-terms.js';
import { createLogger } from '#runtime/logger.js';
import { isAlive } from '#runtime/process-info.js';
import { makeModel, type MadeModel, type Preset } from '../make-model/index.js';
import type { EnginePlan, RunningEngine } from '../ports.js';
import { BuiltInDriver, type BuiltInDriverOptions } from './built-in-driver.js';

/** For tests: a home of their own, tiny real models, and the promise that nothing started is left running. */
export class EngineBench {
  readonly home = mkdtempSync(join(tmpdir(), 'berth-engines-'));
  readonly #engines: RunningEngine[] = [];
  readonly #drivers: BuiltInDriver[] = [];
  readonly #models = new Map<Preset, Promise<MadeModel>>();
  #next = 1;

  readonly key = (id: string): string => createHash('sha256').update(`${this.home} ${id}`).digest('hex');

  driver(options: Partial<BuiltInDriverOptions> = {}): BuiltInDriver {
    const log = createLogger('test');
    log.level = 'silent';
    const driver = new BuiltInDriver({ home: this.home, log, engineKey: this.key, ...options });
    this.#drivers.push(driver);
    return driver;
  }

  model(preset: Preset): Promise<MadeModel> {
    const made =
      this.#models.get(preset) ?? makeModel({ preset, file: join(this.home, 'models', `${preset}.gguf`) });
    this.#models.set(preset, made);
    return made;
  }

  plan(file: string, contract: Partial<Contract> = {}): EnginePlan {
    return {
      residentId: residentId(`resident-${this.#next++}`),
      modelKey: modelKey('test/model'),
      artifact: 'F16',
      files: [file],
      contract: {
        kind: 'chat',
        engine: { kind: 'built-in', build: 'test' },
        rung: 'ram-only',
        contextTokens: 512,
        slots: 1,
        kvType: 'f16',
        gpuLayers: 0,
        cpuMoeLayers: 0,
        microBatch: 128,
        flashAttention: true,
        threads: 1,
        devices: [],
        ...contract,
      },
    };
  }

  async launch(driver: BuiltInDriver, plan: EnginePlan): Promise<RunningEngine> {
    const engine = await driver.launch(plan);
    this.#engines.push(engine);
    return engine;
  }

  async start(
    preset: Preset,
    contract: Partial<Contract> = {},
    driver = this.driver(),
  ): Promise<RunningEngine> {
    const { file } = await this.model(preset);
    const engine = await this.launch(driver, this.plan(file, contract));
    await engine.ready(() => undefined);
    return engine;
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.stop()));
    await Promise.all(this.#drivers.map((driver) => driver.close()));
    const left = this.#engines.filter((engine) => isAlive(engine.pid, engine.pidStartTicks));
    rmSync(this.home, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`Engines are left running: ${left.map((e) => e.pid).join(', ')}`);
  }
}

/** Polls a fact. @throws Error that names it, when it does not come true within the time. */
export async function eventually(
  what: string,
  fact: () => boolean | Promise<boolean>,
  withinMs = 20_000,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await fact())) {
    if (Date.now() > deadline) throw new Error(`It did not come true that ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
