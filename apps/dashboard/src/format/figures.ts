import { formatBytes, formatSeconds } from '#domain/units.js';

/** What stands where nothing is known. */
export const UNKNOWN = '–';

export const bytes = (value: number | undefined): string =>
  value === undefined ? UNKNOWN : formatBytes(value);

export const seconds = (value: number | undefined): string =>
  value === undefined ? UNKNOWN : value < 1 ? `${Math.round(value * 1000)} ms` : formatSeconds(value);

/** `8,192`; digits are grouped the same in every language, since units are English too. */
export const count = (value: number | undefined): string =>
  value === undefined ? UNKNOWN : String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** `1 call`, `2 calls`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export function perSecond(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} tok/s`;
}

/** A part of one as `3.4 %`. */
export function percent(part: number | undefined): string {
  if (part === undefined || !Number.isFinite(part)) return UNKNOWN;
  const value = part * 100;
  return `${Math.abs(value) >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** A signed difference of bytes: `+12.0 MiB`, `−3 KiB`, `±0`. */
export function bytesOff(value: number | undefined): string {
  if (value === undefined) return UNKNOWN;
  if (value === 0) return '±0';
  return `${value > 0 ? '+' : '−'}${formatBytes(Math.abs(value))}`;
}

/** What a device is called: its name where there is one, `RAM` for the host's memory. */
export const deviceName = (deviceId: string, name?: string): string =>
  deviceId === 'ram' ? 'RAM' : (name ?? shortId(deviceId));

/** The end of an id, which tells UUIDv7s of one minute apart. */
export const shortId = (id: string): string => (id.length > 12 ? `…${id.slice(-8)}` : id);
