/**
 * How V8 keeps the api's heap.
 *
 * A call leaves tens of kilobytes of garbage and a decision two hundred: with V8's 16 MiB for what is young, its collector
 * runs so often that it finds calls under way to copy. With 64 MiB most of it is garbage by then, and p99 of a decision
 * halves.
 *
 * Between two such collections the buffers of calls come to some 10 MB, which V8 counts to what is old. Where it lets that
 * grow by a tenth only, as it does while collecting is slow beside other work, every one of them makes it collect the whole
 * heap: a fifth of what a call costs. By its whole size what is old may grow.
 */
export const API_NODE_FLAGS: readonly string[] = ['--max-semi-space-size=64', '--heap-growing-percent=100'];
