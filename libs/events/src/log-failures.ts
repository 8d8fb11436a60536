import { convertToCommandError, ErrorType, isCommandError } from '@eventstore/db-client';
import { BerthFailure, berthError } from '#domain/errors.js';
import type { AppendFailure } from './event-log.js';

/** Answers that asking again cannot change. Everything else leaves the outcome unknown. */
const FINAL: readonly string[] = [
  ErrorType.ACCESS_DENIED,
  ErrorType.STREAM_DELETED,
  ErrorType.INVALID_ARGUMENT,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
  ErrorType.MISSING_REQUIRED_METADATA_PROPERTY,
  ErrorType.UNSUPPORTED,
];

/** The kind of a client's error (`unavailable`, `stream-deleted` …); undefined for one that is not the client's. */
export function kindOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const converted: Error = convertToCommandError(error);
  return isCommandError(converted) ? converted.type : undefined;
}

export const isFinal = (error: unknown): boolean => FINAL.includes(kindOf(error) ?? '');
export const isMissingStream = (error: unknown): boolean => kindOf(error) === ErrorType.STREAM_NOT_FOUND;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const unavailable = (message: string): AppendFailure => ({ kind: 'unavailable', message });
export const refused = (message: string): AppendFailure => ({ kind: 'refused', message });

/** What a read or a subscription throws: a failure that can be shown as it stands. */
export function readFailure(what: string, error: unknown): BerthFailure {
  if (error instanceof BerthFailure) return error;
  const message = isFinal(error)
    ? `The event log refused to read ${what}: ${messageOf(error)}`
    : `The event log did not answer while reading ${what}: ${messageOf(error)}`;
  return new BerthFailure(berthError(isFinal(error) ? 'internal' : 'event_log_unavailable', message), {
    cause: error,
  });
}
