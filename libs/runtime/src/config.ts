import { parseBytes } from '#domain/units.js';
import { BerthFailure, berthError } from '#domain/errors.js';

/**
 * What every process of Berth is told. `bin/berth` resolves flags, environment and berth.yaml into the environment
 * (apps/cli/src/settings); each process reads only its environment, here.
 */
export interface ProcessConfig {
  /** Everything that is written lies below it. */
  readonly home: string;
  readonly host: string;
  readonly port: number;
  /** The root for models of our own; other stores are found beside it. */
  readonly models: string;
  readonly ramMaxBytes?: number;
  /** Per accelerator. */
  readonly vramMaxBytes?: number;
  readonly cpuMax?: number;
  /** Of models in the folder `models`. */
  readonly diskMaxBytes?: number;
  readonly eventstoreUrl: string;
  readonly databaseUrl?: string;
  readonly llamaServerBin?: string;
  /** For how long an engine may answer nothing and do nothing before it is stopped; 0 stops none, 30 when left out. */
  readonly engineSilenceSeconds?: number;
  /** Of call events that wait for the event log; 64 MiB when left out. */
  readonly spoolMaxBytes?: number;
}

/** @throws BerthFailure `invalid_request` that names the variable and what it must be. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): ProcessConfig {
  const text = (name: string) => (env[name] === '' ? undefined : env[name]);
  const required = (name: string, why: string): string => {
    const value = text(name);
    if (value === undefined) throw bad(name, `is not set; ${why}`);
    return value;
  };
  const bytes = (name: string): number | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const parsed = parseBytes(value);
    if (parsed === undefined || parsed <= 0) throw bad(name, `must be a size such as 12GiB, not "${value}"`);
    return parsed;
  };
  const whole = (name: string, min: number, max: number): number | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const parsed = Number(value);
    if (!Number.isInteger(parsed) || parsed < min || parsed > max) {
      throw bad(name, `must be a whole number from ${min} to ${max}, not "${value}"`);
    }
    return parsed;
  };
  const optional = <K extends string, V>(key: K, value: V | undefined) =>
    (value === undefined ? {} : { [key]: value }) as Partial<Record<K, V>>;
  const home = required('BERTH_HOME', 'start this process through bin/berth, which sets it');
  return {
    home,
    host: text('BERTH_HOST') ?? '127.0.0.1',
    port: whole('BERTH_PORT', 0, 65535) ?? 8080,
    models: required('BERTH_MODELS', 'start this process through bin/berth, which sets it'),
    eventstoreUrl: required(
      'EVENTSTORE_URL',
      'name an EventStoreDB (esdb://…), or run `berth up`, which starts an embedded event log',
    ),
    ...optional('ramMaxBytes', bytes('BERTH_RAM_MAX')),
    ...optional('vramMaxBytes', bytes('BERTH_VRAM_MAX')),
    ...optional('cpuMax', whole('BERTH_CPU_MAX', 1, 4096)),
    ...optional('diskMaxBytes', bytes('BERTH_DISK_MAX')),
    ...optional('databaseUrl', text('DATABASE_URL')),
    ...optional('llamaServerBin', text('LLAMA_SERVER_BIN')),
    ...optional('engineSilenceSeconds', whole('BERTH_ENGINE_SILENCE', 0, 86_400)),
    ...optional('spoolMaxBytes', bytes('BERTH_SPOOL_MAX')),
  };
}

const bad = (name: string, what: string) =>
  new BerthFailure(berthError('invalid_request', `${name} ${what}`, { param: name }));
