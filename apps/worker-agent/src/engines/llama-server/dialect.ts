import type { MeasuredMemory } from '#domain/events/worker-events.js';
import { RAM } from '#domain/ids.js';
import type { EngineStateFile } from '../../ports.js';
import { askEngine, objectOf } from '../engine-http.js';
import type { EngineDialect } from '../engine-dialect.js';
import { readProcessMemory, totalFileBytes } from '../process-memory.js';
import { bytesByDevice, isHostBuffer, isMappedBuffer, parseBufferLines, withoutCopied } from './buffers.js';

const ASK_MS = 5000;

/** How one talks to a llama-server that runs. It has no way of its own to stop but SIGTERM. */
export function llamaServerDialect(engineKey: (residentId: string) => string): EngineDialect {
  const ask = (state: EngineStateFile, path: string) =>
    askEngine(state.port, path, { key: engineKey(state.residentId), timeoutMs: ASK_MS });
  return {
    healthPath: '/health',
    key: (state) => engineKey(state.residentId),
    isServing: async (state) =>
      (await askEngine(state.port, '/health', { timeoutMs: ASK_MS }))?.status === 200,
    wrongIdentity: async (state) => {
      const props = objectOf(await ask(state, '/props'));
      if (!props) return 'it does not say what it serves, or asks for another key';
      if (props['model_path'] !== state.files[0]) return 'it serves another model file';
      // Some releases answer /props to anyone; the slots are for the holder of the key, and tell residents apart.
      const metrics = await ask(state, '/metrics');
      return metrics?.status === 401 ? 'it asks for another key' : undefined;
    },
    wrongPlacement,
    times: () => Promise.resolve({}),
    measure: (state, log) => Promise.resolve(measured(state, log)),
    requestsInFlight: async (state) => {
      const reply = await ask(state, '/metrics');
      return reply?.status === 200 ? parseInFlight(reply.body) : undefined;
    },
  };
}

/** A plan for an accelerator that computes on the CPU would serve a hundred times slower than was promised. */
export function wrongPlacement(state: EngineStateFile, log: string): string | undefined {
  if (state.contract.gpuLayers === 0 || state.contract.devices.length === 0) return undefined;
  const weights = parseBufferLines(log).filter((told) => told.term === 'weightsBytes');
  if (weights.length === 0 || weights.some((told) => !isHostBuffer(told.buffer))) return undefined;
  return `${state.contract.gpuLayers} layers were to be on an accelerator, and all of them are in RAM`;
}

export function parseInFlight(metrics: string): number | undefined {
  const value = (name: string) => new RegExp(`^llamacpp:${name} ([\\d.]+)`, 'm').exec(metrics)?.[1];
  const processing = value('requests_processing');
  return processing === undefined ? undefined : Number(processing) + Number(value('requests_deferred') ?? 0);
}

/**
 * The engine's own lines per device, and the operating system's word on the process.
 * @param fileBytes of the weights; of a file that is gone as much as can be, so that all that was told counts
 */
export function measured(
  state: EngineStateFile,
  log: string,
  system = readProcessMemory(state.pid),
  fileBytes = totalFileBytes(state.files, Infinity),
): MeasuredMemory {
  const told = parseBufferLines(log);
  if (told.length === 0) {
    throw new Error(`llama-server of ${state.residentId} told no buffer size in its log.`);
  }
  const anonymousTold = told
    .filter(({ buffer }) => isHostBuffer(buffer) && !isMappedBuffer(buffer))
    .reduce((sum, { bytes }) => sum + bytes, 0);
  const hostAnonymousBytes = system.anonymousBytes ?? anonymousTold;
  const processBytes = Math.max(0, hostAnonymousBytes - anonymousTold);
  return {
    byDevice: bytesByDevice(withoutCopied(told, fileBytes), state.contract.devices).map((device) => ({
      ...device,
      // Of an accelerator only its driver can say what a process takes beyond its buffers.
      processBytes: device.deviceId === RAM ? processBytes : 0,
    })),
    hostAnonymousBytes,
    hostResidentBytes: system.residentBytes ?? hostAnonymousBytes,
    contextTokens: state.contract.contextTokens,
    slots: state.contract.slots,
  };
}
