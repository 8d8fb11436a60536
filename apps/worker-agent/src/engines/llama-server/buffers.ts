import { RAM, type DeviceId } from '#domain/ids.js';
import type { DeviceBytes } from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';

type Term = 'weightsBytes' | 'kvBytes' | 'computeBytes';

const BUFFER = /(\S+)\s+(model|KV|RS|compute|output|LoRA) buffer size =\s+([\d.]+) MiB/;
const TERMS: Readonly<Record<string, Term>> = {
  model: 'weightsBytes',
  LoRA: 'weightsBytes',
  KV: 'kvBytes',
  RS: 'kvBytes',
  compute: 'computeBytes',
  output: 'computeBytes',
};

export interface ToldBuffer {
  readonly buffer: string;
  readonly term: Term;
  readonly bytes: number;
}

/** Every buffer that the log tells of. The prefix of a line moves between releases; its tail does not. */
export function parseBufferLines(log: string): readonly ToldBuffer[] {
  const told: ToldBuffer[] = [];
  for (const line of log.split('\n')) {
    const [, buffer, kind, mib] = BUFFER.exec(line) ?? [];
    const term = TERMS[kind ?? ''];
    if (buffer !== undefined && term !== undefined)
      told.push({ buffer, term, bytes: Math.round(Number(mib) * MIB) });
  }
  return told;
}

/** `CPU`, `CPU_Mapped`, `CPU_REPACK`, `CUDA_Host`, `BLAS`, `Host`: in host memory, whoever computes with it. */
export const isHostBuffer = (buffer: string): boolean => /^(?:CPU|BLAS|AMX|Host|HBM)|_Host$/.test(buffer);

/** Is no anonymous memory: pages of the file. */
export const isMappedBuffer = (buffer: string): boolean => buffer.endsWith('_Mapped');

/** Is a copy of tensors, laid out anew for the processor. */
const isCopy = (buffer: string): boolean => /_REPACK$|^AMX/.test(buffer);

/**
 * The buffers with what the weights take once: tensors that were copied stay in the mapping of the file too, where nobody
 * reads them again.
 * @param fileBytes of the weights on disk: all that can be in memory, unless a tensor is on two devices.
 */
export function withoutCopied(told: readonly ToldBuffer[], fileBytes: number): readonly ToldBuffer[] {
  const weights = told.filter(({ term }) => term === 'weightsBytes');
  if (!weights.some(({ buffer }) => isCopy(buffer))) return told;
  let twice = Math.max(0, weights.reduce((sum, { bytes }) => sum + bytes, 0) - fileBytes);
  return told.map((one) => {
    if (one.term !== 'weightsBytes' || !isMappedBuffer(one.buffer)) return one;
    const less = Math.min(twice, one.bytes);
    twice -= less;
    return { ...one, bytes: one.bytes - less };
  });
}

/**
 * Sums the buffers per device. An engine numbers the accelerators that it was shown (`CUDA0`, `CUDA1`); they were shown
 * in the order of the contract.
 */
export function bytesByDevice(
  told: readonly ToldBuffer[],
  devices: readonly DeviceId[],
): readonly Omit<DeviceBytes, 'processBytes'>[] {
  const sums = new Map<DeviceId, { weightsBytes: number; kvBytes: number; computeBytes: number }>();
  for (const id of [RAM, ...devices]) sums.set(id, { weightsBytes: 0, kvBytes: 0, computeBytes: 0 });
  for (const { buffer, term, bytes } of told) {
    const number = Number(/(\d+)$/.exec(buffer)?.[1] ?? 0);
    const id = isHostBuffer(buffer) ? RAM : (devices[number] ?? RAM);
    const sum = sums.get(id);
    if (sum) sum[term] += bytes;
  }
  return [...sums].map(([deviceId, sum]) => ({ deviceId, ...sum }));
}

/** Lines `NAME model context compute` in whole MiB, as `llama-fit-params -fitp on` prints them. */
export function parseFitPrint(
  text: string,
  devices: readonly DeviceId[],
): readonly Omit<DeviceBytes, 'processBytes'>[] | undefined {
  const told: ToldBuffer[] = [];
  for (const line of text.split('\n')) {
    const [, buffer, ...mib] = /^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$/.exec(line) ?? [];
    if (buffer === undefined) continue;
    const terms: readonly Term[] = ['weightsBytes', 'kvBytes', 'computeBytes'];
    for (const [i, term] of terms.entries()) told.push({ buffer, term, bytes: Number(mib[i]) * MIB });
  }
  return told.length === 0 ? undefined : bytesByDevice(told, devices);
}
