import { closeSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { MOST_TAIL_BYTES } from '#domain/events/limits.js';

const READ_BYTES = 256 * 1024;
/** A server that logs each request fills a disk in time. */
const LONGEST_LOG_BYTES = 64 * 1024 * 1024;

/** `0.00.012.345 I ` of llama-server, `I ` of our own engine; a few early lines have none. */
const PREFIX = /^(?:\d+\.\d+\.\d+\.\d+ )?(?:[IWED] )?\s*/;

/** Lines that engines write while they load. A line of a request has another shape, and is never shown. */
const LOAD_TIME_SHAPES: readonly RegExp[] = [
  /^berth: /,
  /^(?:common_params_print_info|device_info|system_info|build)\b/,
  /^(?:llama_model_load\w*|llama_load_model\w*|llama_model_loader|gguf_\w+|ggml_\w+|load_tensors|load_all_data|load_hparams|load_vocab): /,
  /^(?:print_info|load|init_tokenizer): (?!.*general\.description)/,
  /^(?:llama_context|llama_init_from_model|llama_new_context_with_model|llama_kv_cache\w*|llama_memory_\w+|sched_reserve|resolve_fused_ops): /,
  /^(?:common_init_\w+|common_fit_\w+|llama_params_fit\w*|common_memory_breakdown_print): /,
  /^(?:srv|main|load_model|start_server|init)(?:: |\s+)(?:.*\b(?:load_model|loading model|model loaded|initializing|exiting|cleaning up|listening|bind|failed to|error while|invalid|unknown|prompt cache)\b)/,
  /^error(?:: | while )/i,
  // What ends a process by an assertion or an abort of ggml: `<source file>:<line>: GGML_ASSERT(…) failed`.
  /^\S+\.(?:c|cc|cpp|cu|h|hpp|m|mm):\d+: /,
  /^(?:terminate called|what\(\): |.*: error while loading shared libraries: |Segmentation fault|Aborted|Killed)/,
  /^.*ggml.*(?:failed to allocate|out of memory)/i,
];

/** A request reached the engine: what follows may be about it. */
const FIRST_REQUEST =
  /\b(?:launch_slot_|slot\s+(?:launch|get_available|update)|new prompt|processing task|log_server_r|done request|params_from_|print_timing|prompt eval time)/;

/** Keeps load-time lines up to the first request; the last 4 KiB of them. */
export function filterLoadTimeLines(text: string): string {
  const kept: string[] = [];
  for (const line of text.split('\n')) {
    const bare = line.replace(PREFIX, '');
    if (FIRST_REQUEST.test(bare)) break;
    if (LOAD_TIME_SHAPES.some((shape) => shape.test(bare))) kept.push(line.slice(0, 400));
  }
  let bytes = 0;
  let from = kept.length;
  while (from > 0) {
    bytes += Buffer.byteLength(kept[from - 1] ?? '') + 1;
    if (bytes > MOST_TAIL_BYTES) break;
    from -= 1;
  }
  return kept.slice(from).join('\n');
}

/** The beginning of an engine's log: it loads before it serves, and a long log is long because it served. */
export function readLogStart(file: string): string {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    // No log: the process never wrote, or its folder was cleaned.
    return '';
  }
  try {
    const size = Math.min(fstatSync(fd).size, READ_BYTES);
    const buffer = Buffer.alloc(size);
    const read = readSync(fd, buffer, 0, size, 0);
    return buffer.toString('utf8', 0, read);
  } finally {
    closeSync(fd);
  }
}

/**
 * Cuts a log that has become too long back to its load-time part, in place: engines append, so they write on behind it.
 */
export function cutLog(file: string, longestBytes = LONGEST_LOG_BYTES): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > longestBytes) truncateSync(file, READ_BYTES);
}
