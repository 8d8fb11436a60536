import { UNKNOWN } from './figures.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago, as a person says it: `just now`, `12 s ago`, `5 min ago`, `3 h ago`, `2 d ago`; `in 40 s`. */
export function ago(iso: string | undefined, nowMs: number): string {
  if (iso === undefined) return UNKNOWN;
  const seconds = (nowMs - Date.parse(iso)) / 1000;
  if (!Number.isFinite(seconds)) return UNKNOWN;
  if (Math.abs(seconds) < 1.5) return 'just now';
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}

/** One unit, rounded down: `12 s`, `5 min`, `3 h`, `2 d`. */
export function span(seconds: number): string {
  if (seconds < MINUTE) return `${Math.floor(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** `14:02:05` on the clock of who looks. */
export function clock(iso: string): string {
  const at = new Date(iso);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `2026-11-30 14:02:05` on the clock of who looks, with its offset: what is shown on hover. */
export function absolute(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const offset = -at.getTimezoneOffset();
  const zone =
    offset === 0
      ? 'UTC'
      : `UTC${offset < 0 ? '−' : '+'}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(iso)} ${zone}`;
}

/** Seconds from one stamp to another; undefined when one is missing. */
export function between(from: string | undefined, to: string | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined;
  return (Date.parse(to) - Date.parse(from)) / 1000;
}
