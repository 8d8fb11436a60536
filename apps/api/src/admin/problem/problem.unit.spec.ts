import { NotFoundException, UnauthorizedException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { BerthFailure, berthError, ERROR_CODES, type ErrorCode } from '#domain/errors.js';
import { berthErrorOf, problemOf } from './problem.js';

describe('a problem document', () => {
  it('has for every code of the table its status, our code and a sentence', () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const problem = problemOf(berthError(code, 'A sentence.'), '/admin/x');
      expect(problem).toMatchObject({
        type: `urn:berth:error:${code}`,
        status: ERROR_CODES[code].status,
        code,
        detail: 'A sentence.',
        instance: '/admin/x',
      });
      expect('retryAfterSeconds' in problem).toBe(ERROR_CODES[code].retry);
    }
  });

  it('carries the figures, and never lets them take the place of its own members', () => {
    const error = berthError('model_cannot_fit', 'No.', {
      details: { needBytes: 7, status: 1 },
      param: 'model',
    });
    expect(problemOf(error, '/')).toMatchObject({ needBytes: 7, status: 422, param: 'model' });
  });

  it('asks for a retry within a minute at most', () => {
    const late = berthError('queue_full', 'Full.', { retryAfterSeconds: 600 });
    expect(problemOf(late, '/').retryAfterSeconds).toBe(60);
    const soon = berthError('queue_full', 'Full.', { retryAfterSeconds: 0.2 });
    expect(problemOf(soon, '/').retryAfterSeconds).toBe(1);
  });

  it('is made of whatever was thrown', () => {
    const own = berthError('forbidden', 'No.');
    expect(berthErrorOf(new BerthFailure(own))).toBe(own);
    expect(berthErrorOf(new NotFoundException('Cannot GET /x')).code).toBe('not_found');
    expect(berthErrorOf(new UnauthorizedException({ code: 'invalid_api_key', message: 'no' })).code).toBe(
      'invalid_api_key',
    );
    const malformed = Object.assign(new Error('Body is not valid JSON'), { statusCode: 400 });
    expect(berthErrorOf(malformed)).toMatchObject({
      code: 'invalid_request',
      message: 'Body is not valid JSON',
    });
  });

  it('keeps the words of what nobody foresaw to the log', () => {
    for (const thrown of [new Error('secret path /root'), 'text', undefined]) {
      const error = berthErrorOf(thrown);
      expect(error.code).toBe('internal');
      expect(error.message).not.toContain('secret');
    }
  });
});
