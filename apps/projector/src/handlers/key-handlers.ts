import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf } from './handler.js';

type KeyRecorded = RecordedOf<'KeyIssued'> | RecordedOf<'KeyRevoked'>;

const touches = (views: Views, recorded: KeyRecorded): void => views.api_keys.want(recorded.event.data.keyId);

const rowOf = (views: Views, recorded: KeyRecorded): Row<'api_keys'> =>
  views.api_keys.get(recorded.event.data.keyId) ?? {
    key_id: recorded.event.data.keyId,
    name: null,
    scope: null,
    sha256: null,
    expires_at: null,
    issued_at: null,
    revoked_at: null,
    revoked_by: null,
    position: positionOf(recorded),
  };

const issued: Handler<'KeyIssued'> = {
  touches,
  apply: (views, recorded) => {
    const row = rowOf(views, recorded);
    if (row.issued_at !== null) return;
    const { name, scope, sha256, expiresAt } = recorded.event.data;
    views.api_keys.put({
      ...row,
      name,
      scope,
      sha256,
      expires_at: expiresAt ?? null,
      issued_at: recorded.metadata.at,
    });
  },
};

const revoked: Handler<'KeyRevoked'> = {
  touches,
  apply: (views, recorded) => {
    const row = rowOf(views, recorded);
    if (row.revoked_at !== null) return;
    views.api_keys.put({ ...row, revoked_at: recorded.metadata.at, revoked_by: recorded.event.data.by });
  },
};

export const keyHandlers = { KeyIssued: issued, KeyRevoked: revoked } satisfies Handlers;
