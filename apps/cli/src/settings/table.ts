/**
 * Every setting, once: flags, environment, berth.yaml, help and the reference page are made from this table.
 * `libs/runtime/src/config.ts` reads the environment that results from it in each process.
 */
export interface Setting {
  /** Its flag (`--ram-max`) and its key in berth.yaml (`ram-max`). */
  readonly name: string;
  readonly env: string;
  readonly kind: SettingKind;
  /** Shown in help: `--port N`. */
  readonly placeholder: string;
  readonly summary: string;
  /** What holds when it is not set, in words; undefined when `fallback` gives a value. */
  readonly unset?: string;
  readonly fallback?: string;
}

export type SettingKind =
  | { readonly type: 'path' }
  | { readonly type: 'host' }
  | { readonly type: 'whole'; readonly min: number; readonly max: number }
  | { readonly type: 'size' }
  | { readonly type: 'url'; readonly schemes: readonly string[]; readonly example: string }
  | { readonly type: 'choice'; readonly choices: readonly string[] };

export const SETTINGS = [
  {
    name: 'home',
    env: 'BERTH_HOME',
    kind: { type: 'path' },
    placeholder: 'DIR',
    summary: 'the folder below which everything is written',
    unset: 'the data folder of the user (~/.local/share/berth, XDG_DATA_HOME/berth, or what the system has)',
  },
  {
    name: 'port',
    env: 'BERTH_PORT',
    kind: { type: 'whole', min: 0, max: 65535 },
    placeholder: 'N',
    summary: 'the port of the api; 0 takes any free one',
    fallback: '8080',
  },
  {
    name: 'host',
    env: 'BERTH_HOST',
    kind: { type: 'host' },
    placeholder: 'HOST',
    summary: 'the address that the api listens on; calls from other machines need a key',
    fallback: '127.0.0.1',
  },
  {
    name: 'models',
    env: 'BERTH_MODELS',
    kind: { type: 'path' },
    placeholder: 'DIR',
    summary: 'the folder of models; the stores of other programs are found beside it',
    unset: '<home>/models',
  },
  {
    name: 'ram-max',
    env: 'BERTH_RAM_MAX',
    kind: { type: 'size' },
    placeholder: 'SIZE',
    summary: 'the most memory that models may use, such as 12GiB',
    unset: 'what the machine has',
  },
  {
    name: 'vram-max',
    env: 'BERTH_VRAM_MAX',
    kind: { type: 'size' },
    placeholder: 'SIZE',
    summary: 'the most memory that models may use on each accelerator',
    unset: 'what each accelerator has',
  },
  {
    name: 'cpu-max',
    env: 'BERTH_CPU_MAX',
    kind: { type: 'whole', min: 1, max: 4096 },
    placeholder: 'N',
    summary: 'the most cores that engines may use',
    unset: 'every core',
  },
  {
    name: 'disk-max',
    env: 'BERTH_DISK_MAX',
    kind: { type: 'size' },
    placeholder: 'SIZE',
    summary: "the most disk that models may take in Berth's own folder of them",
    unset: 'what the drive has',
  },
  {
    name: 'eventstore-url',
    env: 'EVENTSTORE_URL',
    kind: { type: 'url', schemes: ['esdb', 'esdb+discover'], example: 'esdb://localhost:2113?tls=false' },
    placeholder: 'URL',
    summary: 'an EventStoreDB or KurrentDB to use instead of the embedded event log',
    unset: 'an embedded event log',
  },
  {
    name: 'database-url',
    env: 'DATABASE_URL',
    kind: { type: 'url', schemes: ['postgres', 'postgresql'], example: 'postgres://user@localhost/berth' },
    placeholder: 'URL',
    summary: 'a Postgres to use instead of the embedded one',
    unset: 'an embedded Postgres',
  },
  {
    name: 'llama-server-bin',
    env: 'LLAMA_SERVER_BIN',
    kind: { type: 'path' },
    placeholder: 'FILE',
    summary: 'the llama-server to use',
    unset: 'the first that is found, else the built-in engine',
  },
  {
    name: 'engine-silence',
    env: 'BERTH_ENGINE_SILENCE',
    kind: { type: 'whole', min: 0, max: 86_400 },
    placeholder: 'SECONDS',
    summary:
      'for how many seconds an engine that serves may answer nothing and use no processor before it is stopped; 0 stops none',
    fallback: '30',
  },
  {
    name: 'spool-max',
    env: 'BERTH_SPOOL_MAX',
    kind: { type: 'size' },
    placeholder: 'SIZE',
    summary: 'the most that an api keeps on disk of call events while the event log is away',
    fallback: '64MiB',
  },
  {
    name: 'log',
    env: 'BERTH_LOG',
    kind: { type: 'choice', choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] },
    placeholder: 'LEVEL',
    summary: 'how much the processes write into their logs',
    fallback: 'info',
  },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]['name'];

/** Where the settings file is; no setting itself, since the file cannot name itself. */
export const CONFIG_ENV = 'BERTH_CONFIG';
/** As BERTH_CONFIG: read no file. */
export const NO_CONFIG = 'none';

export const settingNames: readonly SettingName[] = SETTINGS.map((setting) => setting.name);

/** Wide enough for every reader that does not need each entry's own type. */
export const settingsTable: readonly (Setting & { readonly name: SettingName })[] = SETTINGS;
