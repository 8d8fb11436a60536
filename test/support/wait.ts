type Answer<T> = Exclude<T, undefined | null | false>;

/**
 * Waits for a fact: asks until the answer is there, or throws at the deadline saying what was waited for.
 * An answer is anything but undefined, null and false.
 */
export async function waitFor<T>(
  what: string,
  deadlineMs: number,
  ask: () => T | Promise<T>,
): Promise<Answer<T>> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as Answer<T>;
    if (Date.now() > deadline) throw new Error(`waited ${deadlineMs / 1000} s in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
