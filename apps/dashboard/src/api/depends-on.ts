/** Reads reactive values in an effect that has no other use for them, so that it runs again when they change. */
export function dependsOn(..._values: readonly unknown[]): void {
  // Reading them was all.
}
