/** What a person typed or configured cannot be used: shown as it stands, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
