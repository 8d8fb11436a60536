import { type ArgumentsHost, Catch, type ExceptionFilter, Inject } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BerthError } from '#domain/errors.js';
import { berthErrorOf, problemOf } from './problem.js';

export interface ProblemLog {
  error(fields: object, message: string): void;
}
export const PROBLEM_LOG = Symbol('problem log');

/** The one place where an error becomes an answer of the management API: a problem document. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  readonly #log: ProblemLog;

  constructor(@Inject(PROBLEM_LOG) log: ProblemLog) {
    this.#log = log;
  }

  catch(thrown: unknown, host: ArgumentsHost): void {
    // The agents' line has errors of its own kind.
    if (host.getType() !== 'http') throw thrown;
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const error = berthErrorOf(thrown);
    if (error.code === 'internal') this.#log.error({ err: thrown, url: request.url }, 'A request failed.');
    answer(request, reply, error);
  }
}

/**
 * Options of Fastify, for what it refuses before any route: an address that cannot be decoded. Its type of them goes by
 * the kind of server, which these do not depend on.
 */
export const FRAMEWORK_PROBLEMS: object = {
  frameworkErrors: (thrown: Error, request: FastifyRequest, reply: FastifyReply): void =>
    answer(request, reply, berthErrorOf(thrown)),
};

function answer(request: FastifyRequest, reply: FastifyReply, error: BerthError): void {
  const problem = problemOf(error, request.url.split('?')[0] ?? request.url);
  if (problem.retryAfterSeconds !== undefined) {
    void reply.header('retry-after', String(problem.retryAfterSeconds));
  }
  if (problem.status === 401) void reply.header('www-authenticate', 'Bearer');
  void reply
    .status(problem.status)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .header('cache-control', 'no-store')
    .send(JSON.stringify(problem));
}
