import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Appended } from './event-log.js';
import { WireReader } from './wire-reader.js';

/** The server's answer to one append of the batch call. */
export interface BatchAnswer {
  readonly correlationId: string;
  /** Set when the append stands. */
  readonly appended?: Appended;
  /** Everything else, as the generated class reads it. */
  readonly response?: streamsPb.BatchAppendResp;
}

/**
 * Decodes a `BatchAppendResp` {correlation_id 1, error 2 | success 3, stream_identifier 4}; Success {current_revision 1,
 * no_stream 2, position 3 {commit 1, prepare 2}, no_position 4}. A success is decoded by hand, for there are thousands
 * a second of them.
 */
export function batchAnswer(bytes: Buffer): BatchAnswer {
  const reader = new WireReader(bytes);
  let correlationId = '';
  let appended: Appended | undefined;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x0a) {
      const id = reader.message();
      if (id.tag() !== 0x12) break;
      correlationId = id.text();
    } else if (tag === 0x1a) appended = success(reader.message());
    else if (tag === 0x22) reader.chunk();
    else break;
  }
  if (correlationId !== '' && appended) return { correlationId, appended };
  const response = streamsPb.BatchAppendResp.deserializeBinary(bytes);
  return { correlationId: response.getCorrelationId()?.getString() ?? '', response };
}

function success(reader: WireReader): Appended | undefined {
  let revision: number | undefined;
  let position: Appended['position'] | undefined;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x08) revision = reader.varint();
    else if (tag === 0x1a) {
      const at = reader.message();
      let commit = 0;
      let prepare = 0;
      for (let t = at.tag(); t !== 0; t = at.tag()) {
        if (t === 0x08) commit = at.varint();
        else if (t === 0x10) prepare = at.varint();
        else return undefined;
      }
      if (commit > Number.MAX_SAFE_INTEGER || prepare > Number.MAX_SAFE_INTEGER) return undefined;
      position = { commit: BigInt(commit), prepare: BigInt(prepare) };
    } else return undefined;
  }
  return revision === undefined || !position ? undefined : { revision, position };
}
