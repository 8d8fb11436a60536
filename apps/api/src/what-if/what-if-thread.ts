import { parentPort, workerData } from 'node:worker_threads';
import type { WhatIfReport } from '#domain/wire/index.js';
import { openEventLog } from '#events/connect.js';
import type { WhatIfChange } from '#placement/what-if/change.js';
import { LOWER, lowerThread } from '#runtime/priority.js';
import { answer } from './answer.js';
import { readTime } from './read-time.js';

/** What the thread is started with, and what it says. */
export interface WhatIfOrder {
  readonly eventstoreUrl: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly changes: readonly WhatIfChange[];
  readonly bound: boolean;
}

export type WhatIfWord =
  | { readonly kind: 'step'; readonly step: string; readonly fraction?: number }
  | { readonly kind: 'done'; readonly report: WhatIfReport }
  | { readonly kind: 'failed'; readonly message: string };

const say = (word: WhatIfWord): void => parentPort?.postMessage(word);

async function run({ eventstoreUrl, fromMs, toMs, changes, bound }: WhatIfOrder): Promise<WhatIfReport> {
  lowerThread(LOWER);
  const log = openEventLog({ url: eventstoreUrl, by: 'what-if', now: Date.now });
  try {
    say({ kind: 'step', step: 'reading the log' });
    const time = await readTime(log, fromMs, toMs, (events) =>
      say({ kind: 'step', step: `reading the log: ${events.toLocaleString('en')} events` }),
    );
    return await answer(time, changes, bound, (step, fraction) => say({ kind: 'step', step, fraction }));
  } finally {
    await log.close();
  }
}

try {
  say({ kind: 'done', report: await run(workerData as WhatIfOrder) });
} catch (error) {
  say({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
}
