import { performance } from 'node:perf_hooks';
import { messageOf, NodeError, notReady } from '../errors.js';
import { isDamage, isDiskFull, type Sqlite } from './database.js';

interface Job {
  readonly work: () => void;
  readonly settle: (failure: NodeError | undefined) => void;
}

export interface CommitHooks {
  /** The group is durable; called before anybody is answered. */
  committed(): void;
  /** Nothing of the group stands: forget what was assumed. */
  rolledBack(): void;
  /** The file's content is damaged; the process must not go on. */
  damaged(error: unknown): void;
}

const LONGEST_WAIT_MS = 2;
const LARGEST_GROUP = 512;

/**
 * Many appends, one transaction, one fsync: it waits while the queue still grows, at most 2 ms, and answers after the
 * COMMIT alone. A refused append is only an answer and takes none of its neighbours back; a failed COMMIT fails every
 * append of the group.
 */
export class GroupCommit {
  #queue: Job[] = [];
  #scheduled = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(
    readonly db: Sqlite,
    readonly hooks: CommitHooks,
  ) {}

  get waiting(): number {
    return this.#queue.length;
  }

  /**
   * Runs `work` in the next group. It must refuse (throw NodeError) before it writes. The answer comes when the group
   * is durable.
   */
  submit<T>(work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(notReady());
    return new Promise<T>((resolve, reject) => {
      let outcome: { readonly value: T } | { readonly refused: NodeError } | undefined;
      this.#queue.push({
        work: () => {
          try {
            outcome = { value: work() };
          } catch (error) {
            if (!(error instanceof NodeError)) throw error;
            outcome = { refused: error };
          }
        },
        settle: (failure) => {
          if (failure) reject(failure);
          else if (outcome && 'value' in outcome) resolve(outcome.value);
          else reject(outcome ? outcome.refused : notReady());
        },
      });
      this.#schedule();
    });
  }

  /** Commits what waits, then refuses what comes. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const since = performance.now();
    let seen = 0;
    const look = () => {
      const grew = this.#queue.length > seen;
      seen = this.#queue.length;
      if (grew && seen > 1 && seen < LARGEST_GROUP && performance.now() - since < LONGEST_WAIT_MS) {
        setImmediate(look);
      } else {
        this.#scheduled = false;
        this.#flush();
      }
    };
    setImmediate(look);
  }

  #flush(): void {
    const group = this.#queue.slice(0, LARGEST_GROUP);
    this.#queue = this.#queue.slice(LARGEST_GROUP);
    let failure: NodeError | undefined;
    try {
      this.db.exec('begin immediate');
      for (const job of group) job.work();
      this.db.exec('commit');
    } catch (error) {
      failure = this.#fail(error);
    }
    if (!failure) this.hooks.committed();
    for (const job of group) job.settle(failure);
    if (this.#queue.length > 0) this.#schedule();
    else for (const done of this.#idle.splice(0)) done();
  }

  #fail(error: unknown): NodeError {
    let cause = error;
    try {
      if (this.db.inTransaction) this.db.exec('rollback');
    } catch (second) {
      cause = second;
    }
    this.hooks.rolledBack();
    if (isDamage(error) || isDamage(cause)) this.hooks.damaged(error);
    const what = isDiskFull(error)
      ? 'The disk that holds the event log is full: nothing was written, reads go on. Free some space and append again.'
      : `The event log could not be written (${messageOf(error)}): nothing was written.`;
    return new NodeError({ code: 'storage-failed' }, what, { cause: error });
  }
}
