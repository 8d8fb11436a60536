import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { randomUUID } from 'node:crypto';
import { formatBytes } from '#domain/units.js';
import { batchMessage } from './batch-message.js';
import type { EncodedEvent } from './codec.js';
import type { Appended, AppendFailure, AppendOutcome, ExpectedRevision } from './event-log.js';
import type { BatchAnswer } from './batch-answer.js';
import type { BatchCall, LogClient } from './log-client.js';
import { isFinal, messageOf, refused, unavailable } from './log-failures.js';

type Settle = (outcome: AppendOutcome) => void;

/**
 * The deadline on the wire is a time of the day, and the server holds it against its own clock: a writer whose clock is
 * behind, or was set back, would have every append refused as too late. A server bounds an append by itself, too.
 */
const CLOCKS_DIFFER_MS = 86_400_000;

/** Appends over one long call, each with a deadline of its own. Every append is answered exactly once, and never throws. */
export class AppendChannel {
  readonly #client: LogClient;
  readonly #pending = new WeakMap<BatchCall, Map<string, Settle>>();

  constructor(client: LogClient) {
    this.#client = client;
  }

  append(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
    deadlineMs: number,
  ): Promise<AppendOutcome> {
    return new Promise((resolve) => {
      const correlationId = randomUUID();
      let call: BatchCall | undefined;
      const settle: Settle = (outcome) => {
        clearTimeout(timer);
        if (call) this.#pending.get(call)?.delete(correlationId);
        resolve(outcome);
      };
      let over = false;
      const timer = setTimeout(() => {
        over = true;
        settle(failed(unavailable(`The event log did not acknowledge an append within ${deadlineMs} ms.`)));
      }, deadlineMs);
      const send = (open: BatchCall) => {
        if (over) return;
        call = open;
        const pending = this.#pending.get(open);
        if (!pending || open.destroyed || open.writableEnded) {
          settle(failed(unavailable('The connection to the event log broke before the append was sent.')));
          return;
        }
        pending.set(correlationId, settle);
        const until = Date.now() + deadlineMs + CLOCKS_DIFFER_MS;
        open.write(batchMessage(correlationId, stream, events, expected, until));
      };
      const current = this.#client.currentBatchCall();
      if (current) send(current);
      else {
        this.#client
          .batchCall((opened) => this.#watch(opened))
          .then(send)
          .catch((error: unknown) => settle(failed(failureOf(error))));
      }
    });
  }

  #watch(call: BatchCall): void {
    const pending = new Map<string, Settle>();
    this.#pending.set(call, pending);
    const breakAll = (error: unknown) => {
      for (const settle of [...pending.values()]) settle(failed(failureOf(error)));
    };
    call.on('data', (answer: BatchAnswer) => {
      // An answer whose append has given up is of no use any more: its caller was told that the outcome is unknown.
      const settle = pending.get(answer.correlationId);
      if (!settle) return;
      try {
        settle(answer.appended ? { ok: true, value: answer.appended } : outcomeOf(answer.response));
      } catch (error) {
        settle(
          failed(unavailable(`The event log's answer to an append could not be read: ${messageOf(error)}`)),
        );
      }
    });
    call.on('error', breakAll);
    call.on('end', () => {
      call.end();
      breakAll(new Error('the server ended the call'));
    });
  }
}

const failed = (error: AppendFailure): AppendOutcome => ({ ok: false, error });

const failureOf = (error: unknown): AppendFailure =>
  isFinal(error)
    ? refused(`The event log refused the append: ${messageOf(error)}`)
    : unavailable(`The connection to the event log broke during an append: ${messageOf(error)}`);

function outcomeOf(response: streamsPb.BatchAppendResp | undefined): AppendOutcome {
  const success = response?.getSuccess();
  if (success) {
    const position = success.getPosition();
    const value: Appended = {
      revision: Number(success.getCurrentRevision()),
      position: {
        commit: BigInt(position?.getCommitPosition() ?? 0),
        prepare: BigInt(position?.getPreparePosition() ?? 0),
      },
    };
    return { ok: true, value };
  }
  const status = response?.getError();
  const details = status?.getDetails();
  const said = status?.getMessage() ?? '';
  if (!details)
    return failed(unavailable(`The event log could not say whether an append was written: ${said}`));
  switch (details.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion': {
      const wrong = sharedPb.WrongExpectedVersion.deserializeBinary(details.getValue_asU8());
      const actual = wrong.hasCurrentStreamRevision() ? Number(wrong.getCurrentStreamRevision()) : -1;
      return failed({ kind: 'conflict', actual });
    }
    case 'event_store.client.StreamDeleted':
      return failed(refused('The stream was deleted for good; its name cannot be used again.'));
    case 'event_store.client.AccessDenied':
      return failed(refused('The credential of this process may not append to that stream.'));
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const max = sharedPb.MaximumAppendSizeExceeded.deserializeBinary(details.getValue_asU8());
      return failed(
        refused(`The event log takes at most ${formatBytes(max.getMaxappendsize())} in one append.`),
      );
    }
    case 'event_store.client.BadRequest':
      return failed(refused(`The event log calls the append malformed: ${said}`));
    case 'event_store.client.Timeout':
      return failed(unavailable('The event log ran out of time for an append.'));
    default:
      return failed(unavailable(`The event log could not say whether an append was written: ${said}`));
  }
}
