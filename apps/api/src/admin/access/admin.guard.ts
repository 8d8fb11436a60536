import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { BerthFailure } from '#domain/errors.js';
import { ACCESS_POLICY, type AccessPolicy } from './access-policy.js';

/** Lets a request of the management API in, or answers with the policy's refusal. */
@Injectable()
export class AdminGuard implements CanActivate {
  readonly #policy: AccessPolicy;

  constructor(@Inject(ACCESS_POLICY) policy: AccessPolicy) {
    this.#policy = policy;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const refusal = await this.#policy.refuse({
      peer: request.raw.socket.remoteAddress,
      headers: request.headers,
    });
    if (refusal) throw new BerthFailure(refusal);
    return true;
  }
}
