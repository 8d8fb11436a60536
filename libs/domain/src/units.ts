/** Bytes are integers below 2^53; people read GiB and MiB. */
export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

/** `1.50 GiB`, `312.4 MiB`, `18 KiB`; exact enough to compare two figures by eye. */
export function formatBytes(bytes: number): string {
  const size = Math.abs(bytes);
  if (size >= GIB) return `${(bytes / GIB).toFixed(2)} GiB`;
  if (size >= MIB) return `${(bytes / MIB).toFixed(1)} MiB`;
  if (size >= KIB) return `${(bytes / KIB).toFixed(0)} KiB`;
  return `${bytes} B`;
}

/** `0.8 s`, `42 s`, `3 min 20 s`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?$/i;
const POWERS = { '': 0, k: 1, m: 2, g: 3, t: 4 } as const;

/**
 * Reads a size as a person writes it: `1.5GiB`, `900M`, `24 GB`, `1073741824`.
 * A unit with `i`, or a bare letter, counts in 1,024; `kB`, `MB`, `GB`, `TB` count in 1,000.
 * @returns whole bytes, or undefined when the text is no size.
 */
export function parseBytes(text: string): number | undefined {
  const match = SIZE.exec(text.trim());
  if (!match) return undefined;
  const letter = (match[2] ?? '').toLowerCase() as keyof typeof POWERS;
  const decimal = letter !== '' && match[3] === '' && /b$/i.test(text.trim());
  return Math.floor(Number(match[1]) * (decimal ? 1000 : 1024) ** POWERS[letter]);
}
