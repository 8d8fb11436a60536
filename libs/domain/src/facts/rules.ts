import { type DeviceBytes, type PlacementClass, sumOf } from '../placement-terms.js';

/** Everything that a load took, by device. */
export function deviceTotals(byDevice: readonly DeviceBytes[]): ReadonlyMap<string, number> {
  const totals = new Map<string, number>();
  for (const d of byDevice) {
    totals.set(d.deviceId, (totals.get(d.deviceId) ?? 0) + sumOf(d));
  }
  return totals;
}

/** KV cache over the tokens that it has room for. */
export function kvBytesPerToken(
  byDevice: readonly DeviceBytes[],
  { contextTokens, slots }: PlacementClass,
): number | undefined {
  const tokens = contextTokens * slots;
  const bytes = byDevice.reduce((total, d) => total + d.kvBytes, 0);
  return tokens > 0 && bytes > 0 ? bytes / tokens : undefined;
}

/** Mean and worst of |measured − predicted| ÷ measured; undefined when nothing was predicted. */
export function sizeErrors(
  loads: readonly { readonly measured: number; readonly predicted: number }[],
): { readonly meanError: number; readonly worstError: number } | undefined {
  const errors = loads
    .filter(({ measured, predicted }) => measured > 0 && predicted > 0)
    .map(({ measured, predicted }) => Math.abs(measured - predicted) / measured);
  if (errors.length === 0) return undefined;
  return {
    meanError: errors.reduce((total, error) => total + error, 0) / errors.length,
    worstError: Math.max(...errors),
  };
}
