let second = NaN;
let upToSecond = '';

/** ISO 8601 in UTC, as `toISOString` says it. The stamps of a batch of calls lie within few seconds: their text is kept. */
export function isoTime(ms: number): string {
  const inSecond = ((ms % 1000) + 1000) % 1000;
  const whole = ms - inSecond;
  if (whole !== second) {
    upToSecond = new Date(whole).toISOString().slice(0, -4);
    second = whole;
  }
  return `${upToSecond}${inSecond < 10 ? '00' : inSecond < 100 ? '0' : ''}${inSecond}Z`;
}
