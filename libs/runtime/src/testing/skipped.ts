/**
 * Whether a test cannot be run here, for `skipIf`. Why is said aloud: a test that is passed over in silence looks like one
 * that passed.
 */
export function skippedWhen(missing: boolean, why: string): boolean {
  if (missing) process.stderr.write(`\n*** SKIPPED: ${why} ***\n\n`);
  return missing;
}
