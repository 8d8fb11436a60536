import { setTimeout as pause } from 'node:timers/promises';
import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
} from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { BerthFailure } from '#domain/errors.js';
import type { Caller } from '../../access/access.js';
import { ACCESS_POLICY, type AccessPolicy } from './access-policy.js';

const callers = new WeakMap<FastifyRequest, Caller>();

/** Lets a request of the management API in, or answers with the policy's refusal. Guards every route that Nest serves. */
@Injectable()
export class AdminGuard implements CanActivate {
  readonly #policy: AccessPolicy;

  constructor(@Inject(ACCESS_POLICY) policy: AccessPolicy) {
    this.#policy = policy;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    // The agents' line has a token of its own.
    if (context.getType() !== 'http') return true;
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { remoteAddress: peer } = request.raw.socket;
    const entry = this.#policy.management({ peer, method: request.method, headers: request.headers });
    if (!entry.ok) {
      if (entry.error.delayMs > 0) await pause(entry.error.delayMs);
      throw new BerthFailure(entry.error.error);
    }
    callers.set(request, entry.value);
    return true;
  }
}

/** Who asked, as events say it: `key:<id>`, or `local` for who needs no key. */
export const By = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const caller = callers.get(context.switchToHttp().getRequest<FastifyRequest>());
  return caller?.keyId === undefined ? 'local' : `key:${caller.keyId}`;
});
