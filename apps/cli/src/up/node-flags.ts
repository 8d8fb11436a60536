/**
 * A call leaves tens of kilobytes of garbage and a decision two hundred: with V8's 16 MiB for what is young, its collector
 * runs so often that it finds calls under way to copy. With 64 MiB most of it is garbage by then, and p99 of a decision
 * halves.
 */
export const API_NODE_FLAGS: readonly string[] = ['--max-semi-space-size=64'];
