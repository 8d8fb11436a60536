/** Polls for a fact; the error names what never came true. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  withinMs = 15_000,
  what = fact.toString(),
): Promise<void> {
  const end = Date.now() + withinMs;
  while (!(await fact())) {
    if (Date.now() > end) throw new Error(`not true within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
