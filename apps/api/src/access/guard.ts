import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { BerthFailure } from '#domain/errors.js';
import { refuseVisitor } from './policy.js';

/** The data plane's policy for everything that Nest serves; the agents' line has a token of its own. */
@Injectable()
export class LocalOnlyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.getType() !== 'http') return true;
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const refused = refuseVisitor({ peer: request.raw.socket.remoteAddress, headers: request.headers });
    if (refused) throw new BerthFailure(refused);
    return true;
  }
}
