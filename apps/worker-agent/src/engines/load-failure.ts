import type { LoadFailureClass } from '#domain/events/worker-events.js';
import { type EngineExit, LoadFailure } from '../ports.js';
import { filterLoadTimeLines } from './log-tail.js';

/**
 * What engines say before they give up; exit codes say nothing (all are 1). The first match decides: a file that is
 * cut short also fails to allocate its tensors, so the file comes before the memory.
 */
const WORDS: readonly (readonly [LoadFailureClass, RegExp])[] = [
  [
    'bad-artifact',
    /not within the file bounds|corrupted or incomplete|invalid (?:gguf )?magic|bad magic|failed to read (?:magic|key|tensor|header)|invalid GGUF|gguf_init_from_\w+: failed|duplicated? tensor|missing tensor|tensor '[^']*' (?:not found|has (?:wrong|invalid))|wrong number of tensors|wrong shape|unexpected end of file|out of (?:file )?bounds|key not found in model|error loading model hyperparameters|error loading model vocabulary|cannot find tokenizer|offset is outside|invalid typed array length|no such file|ENOENT|failed to open GGUF|is not a valid GGUF|unsupported gguf version|(?:llama-vocab|llama-model|llama-model-loader|llama-hparams|llama-mmap|gguf)\.cpp:\d+: GGML_ASSERT/i,
  ],
  [
    'incompatible-engine',
    /unknown model architecture|unsupported model architecture|unknown pre-tokenizer|unknown argument|invalid argument:|not supported by this (?:build|engine)|requires flash attention|quantized V cache|head size|illegal instruction|error while loading shared libraries|cannot execute binary|NoBinaryFound|invalid ELF|Computing (?:rankings|embeddings) is not supported/i,
  ],
  [
    'out-of-memory',
    /failed to allocate|unable to allocate|cudaMalloc failed|out of memory|cannot allocate memory|bad_alloc|ENOMEM|alloc_tensor_range|not enough (?:v?ram|memory)|insufficient memory/i,
  ],
];

export function classOfWords(text: string): LoadFailureClass {
  return WORDS.find(([, words]) => words.test(text))?.[0] ?? 'exited';
}

/** The last line that says what went wrong, for the sentence that a person reads. */
export function causeLine(tail: string): string | undefined {
  const lines = tail.split('\n').filter((line) => line.trim() !== '');
  const said = lines.filter((line) =>
    /(?:^|\s)E |error|failed|GGML_ASSERT|unknown|invalid|cannot|couldn't|terminate/i.test(line),
  );
  const decisive = said.find((line) => classOfWords(line) !== 'exited');
  return (decisive ?? said.at(-1) ?? lines.at(-1))?.replace(/^(?:\d+\.\d+\.\d+\.\d+ )?[IWED] /, '').trim();
}

/** What kept a process from being started at all: the program, the memory, or the disk that its files lie on. */
export function spawnFailure(error: unknown): LoadFailure {
  const why = error instanceof Error ? error.message : String(error);
  const failureClass = /\b(?:ENOMEM|EAGAIN)\b/.test(why)
    ? 'out-of-memory'
    : /\bspawn\b.*\b(?:ENOENT|EACCES|ENOEXEC|EPERM)\b/.test(why)
      ? 'incompatible-engine'
      : 'exited';
  return new LoadFailure(failureClass, `The engine could not be started: ${why}.`, '');
}

const howGone = (exit: EngineExit): string => {
  if (exit.signal !== undefined) return `was ended by ${exit.signal}`;
  return exit.code === undefined ? 'is gone' : `exited with code ${exit.code}`;
};

/**
 * A process that went away while it loaded.
 * @param kills how many processes the kernel killed for want of memory meanwhile
 */
export function exitFailure(exit: EngineExit, log: string, kills: number): LoadFailure {
  const tail = filterLoadTimeLines(log);
  const cause = causeLine(tail);
  const words = classOfWords(log);
  // The kernel's out-of-memory killer leaves no words, only this signal and its count. A kill by anybody else says
  // nothing of memory: it must not bar the context that was being loaded.
  const failureClass = words === 'exited' && exit.signal === 'SIGKILL' && kills > 0 ? 'out-of-memory' : words;
  return new LoadFailure(
    failureClass,
    `The engine ${howGone(exit)} while loading${cause === undefined ? '' : `: ${cause}`}.`,
    tail,
  );
}
