import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until the fact holds; false when it does not within the time. */
export async function waitFor(
  fact: () => boolean | Promise<boolean>,
  withinMs: number,
  everyMs = 15,
): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    if (await fact()) return true;
    if (performance.now() >= deadline) return false;
    await sleep(everyMs);
  }
}
