const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UTC_TIME = /^\d{4}-\d\d-\d\dT\d\d:/;

/** The UTC hour in which a time lies, as the database gives it back. @throws RangeError when it is no time. */
export const utcHour = (at: string): string => beginning(at, 13, ':00:00.000Z', HOUR_MS);

/** The UTC day, likewise. */
export const utcDay = (at: string): string => beginning(at, 10, 'T00:00:00.000Z', DAY_MS);

function beginning(at: string, digits: number, rest: string, ms: number): string {
  if (at.endsWith('Z') && UTC_TIME.test(at)) return `${at.slice(0, digits)}${rest}`;
  const atMs = Date.parse(at);
  if (Number.isNaN(atMs)) throw new RangeError(`"${at}" is not a time.`);
  return new Date(Math.floor(atMs / ms) * ms).toISOString();
}
