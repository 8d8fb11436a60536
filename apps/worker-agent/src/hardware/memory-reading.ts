export interface MemoryReading {
  /** What the machine has for us: a cgroup's limit counts as the machine's. */
  readonly totalBytes: number;
  /** In use and not reclaimable; file pages that the kernel can drop do not count. */
  readonly usedBytes: number;
  readonly availableBytes: number;
  /** Likewise: no more than the cgroup may swap. */
  readonly swapBytes: number;
  readonly swapUsedBytes: number;
}
