import { recordBody, recordId } from '../protocol/record.js';
import { eventFrame, linkFrame, withStructuredId } from '../protocol/read-frames.js';
import type { ReadRequest } from '../protocol/read-request.js';
import type { EventReader } from '../store/event-reader.js';
import type { StoredEvent } from '../store/tail.js';

const LINK = /^(\d+)@(.+)$/s;

/** Turns a stored event into the message that one reader wants: links resolved or not, ids as text or as numbers. */
export function framesFor(
  request: Pick<ReadRequest, 'resolveLinks' | 'structuredIds'>,
  reader: EventReader,
): (event: StoredEvent) => Buffer {
  const shown = request.structuredIds
    ? (record: Buffer) => withStructuredId(record, recordId(record))
    : (record: Buffer) => record;
  return (event) => {
    if (!request.resolveLinks || event.type !== '$>') return eventFrame(shown(event.record), event.position);
    const target = linkTarget(event, reader);
    return linkFrame(target && shown(target.record), shown(event.record), event.position);
  };
}

/** Undefined when what the link names is deleted, truncated or never was. */
function linkTarget(link: StoredEvent, reader: EventReader): StoredEvent | undefined {
  const [, revision, stream] = LINK.exec(recordBody(link.record).data.toString('utf8')) ?? [];
  return revision !== undefined && stream !== undefined
    ? reader.visibleEvent(stream, Number(revision))
    : undefined;
}
