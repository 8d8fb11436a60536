import { NodeError } from '../errors.js';
import type { ProposedEvent } from '../protocol/record.js';

/** What passes here passes on every server: later ones allow more by default. */
export const MAX_APPEND_BYTES = 1024 * 1024;

export const eventBytes = (event: ProposedEvent): number =>
  event.data.length + event.customMetadata.length + 2 * event.type.length;

export const tooLarge = (): NodeError =>
  new NodeError(
    { code: 'append-too-large', limitBytes: MAX_APPEND_BYTES },
    `Maximum Append Size of ${MAX_APPEND_BYTES} bytes exceeded. Split the events over several appends.`,
  );

/** An append must be complete within this time, and within the writer's own deadline if that is sooner. */
export const APPEND_TIMEOUT_MS = 2000;

export const tooLate = (): NodeError =>
  new NodeError({ code: 'timeout' }, 'The append was not complete within its deadline; nothing was written.');
