import type { OperatorAccepted, OperatorActionRequest } from '#domain/wire/index.js';
import { request } from './client.js';

/** Asks for an action once, whatever happens to the connection; its end is told on `/live`. */
export const act = (action: OperatorActionRequest): Promise<OperatorAccepted> =>
  request<OperatorAccepted>('POST', 'admin/operator/actions', {
    body: action,
    headers: { 'idempotency-key': crypto.randomUUID() },
  });
