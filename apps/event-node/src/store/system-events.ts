import { randomUUID } from 'node:crypto';
import type { ProposedEvent } from '../protocol/record.js';

/** Every real log holds events of the server's own; code that forgets to leave them out shall meet them here too. */
export function systemEvents(): readonly (readonly [stream: string, event: ProposedEvent])[] {
  return [
    [
      '$user-admin',
      systemEvent('$UserCreated', { loginName: 'admin', groups: ['$admins'], disabled: false }),
    ],
    ['$users', systemEvent('$User', 'admin')],
  ];
}

function systemEvent(type: string, data: unknown): ProposedEvent {
  return {
    id: randomUUID(),
    type,
    json: true,
    data: Buffer.from(JSON.stringify(data), 'utf8'),
    customMetadata: Buffer.alloc(0),
  };
}
