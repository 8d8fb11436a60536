import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Observable } from 'rxjs';
import type { ViewsDb } from '#schema/connect.js';
import { POSITION } from '../paging/page.js';
import { fail } from '../problem/fail.js';
import { ViewsReader } from '../views/views-reader.js';

export const WAIT_MOST_MS = Symbol('longest wait for a view');
const POLL_MS = 25;

export const viewsPosition = (db: ViewsDb) =>
  db.selectFrom('checkpoints').select('commit_position').where('name', '=', 'views');

/** `?wait=<position>` on any read: it is answered once the views have folded the event at that position. */
@Injectable()
export class WaitInterceptor implements NestInterceptor {
  readonly #views: ViewsReader;
  readonly #mostMs: number;

  constructor(@Inject(ViewsReader) views: ViewsReader, @Inject(WAIT_MOST_MS) mostMs: number) {
    this.#views = views;
    this.#mostMs = mostMs;
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    if (context.getType() === 'http') {
      const { query } = context
        .switchToHttp()
        .getRequest<FastifyRequest<{ Querystring: { wait?: unknown } }>>();
      const { wait } = query;
      // No list knows it: it is a matter of all of them.
      delete query.wait;
      if (wait !== undefined) await waitForViews(this.#views, positionIn(wait), this.#mostMs);
    }
    return next.handle();
  }
}

/** Resolves when the views have folded the event at a position. @throws BerthFailure `views_behind` after `mostMs`. */
export async function waitForViews(views: ViewsReader, position: bigint, mostMs: number): Promise<void> {
  const until = performance.now() + mostMs;
  for (;;) {
    const row = await views.read((db) => viewsPosition(db).executeTakeFirst());
    const folded = BigInt(row?.commit_position ?? -1);
    if (folded >= position) return;
    if (performance.now() >= until) {
      const message = `The views stand at ${folded} and have not come to ${position} within ${mostMs / 1000} s. What was written is in the log; ask again.`;
      fail('views_behind', message, { details: { position: String(folded) }, retryAfterSeconds: 2 });
    }
    await pause(POLL_MS);
  }
}

function positionIn(wait: unknown): bigint {
  if (typeof wait === 'string' && POSITION.test(wait)) return BigInt(wait);
  const message = 'wait must be a position, as a command answers it.';
  fail('invalid_request', message, 'wait');
}
