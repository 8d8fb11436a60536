/** An event as code makes it: the codec adds the schema version, the store the rest. */
export interface EventOf<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
}

/** What every event says of itself. Written by construction, never by hand. */
export interface EventMetadata {
  /** The call or action that it belongs to. */
  readonly $correlationId: string;
  /** Id of the event or command that caused it. */
  readonly $causationId: string;
  /** ISO time of the writer, with milliseconds. */
  readonly at: string;
  /** Who wrote it: `api:<apiId>`, `agent:<workerId>`, `cli`. */
  readonly by: string;
  readonly schemaVersion: number;
}

/** Position in the whole log. Opaque: only compared, never counted with. */
export interface LogPosition {
  readonly commit: bigint;
  readonly prepare: bigint;
}

/** An event as the log gave it back, upcast to the current version. */
export interface Recorded<E> {
  readonly event: E;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: LogPosition;
  readonly metadata: EventMetadata;
}
