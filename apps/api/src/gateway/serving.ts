import type { IncomingMessage } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import type { CallOutcome } from '#domain/events/call-events.js';
import type { WorkerId } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import type { Admission } from '../admission/admission.js';
import type { AdmissionEnd, AdmittedCall, Lease, PendingAdmission, Wanted } from '../admission/port.js';
import type { CallRecord } from '../recorder/call-record.js';
import { bodyForEngine, type CallBody } from './call-body.js';
import type { CallClient } from './client.js';
import type { EngineRoute } from './engine-routes.js';
import type { Engines } from './engines.js';
import { STREAM_HEADERS, upstreamHeaders } from './headers.js';
import type { Hold } from './hold.js';
import type { NativeBody, Prepared, ProtocolCall } from './protocols/protocol.js';
import { LEFT, Relay, type RelayEnd } from './relay.js';
import type { Resolved } from './resolve.js';
import type { Upload } from './upload.js';
import type { Counted } from './usage.js';

/** How a call ended. */
export interface Ending {
  readonly outcome: CallOutcome;
  /** What its caller is told, where it can still be told something. */
  readonly error?: BerthError;
  readonly counted?: Counted;
}

export interface ServingDeps {
  readonly admission: Admission;
  readonly engines: Engines;
  readonly logger: Logger;
  readonly now: () => number;
  /** Whether the engine of a resident has a route of its own for a protocol. */
  readonly speaks: (worker: WorkerId, resident: Resident, capability: NativeBody['capability']) => boolean;
}

/** The same call in the caller's own protocol, for an engine that has the route. */
export interface NativeRequest {
  readonly capability: NativeBody['capability'];
  readonly route: EngineRoute;
  readonly body: CallBody;
}

export interface ServingOptions extends ServingDeps {
  readonly req: IncomingMessage;
  readonly client: CallClient;
  readonly record: CallRecord;
  readonly body: CallBody;
  readonly resolved: Resolved;
  readonly wanted: Wanted;
  /** The engine's route that serves it. */
  readonly route: EngineRoute;
  readonly hold: Hold;
  readonly protocol: ProtocolCall | undefined;
  /** The answer, where only the load was wanted. */
  readonly whenLoaded: Prepared['whenLoaded'];
  readonly native: NativeRequest | undefined;
  /** The form that is sent in place of the body. */
  readonly upload: Upload | undefined;
  readonly end: (ending: Ending) => void;
  /** For steps that something else than the call's own code begins: what they throw ends the call. */
  readonly guard: (step: () => void) => void;
}

/** Made once: an error takes its stack, which at every call is a good part of what the call costs. */
const ENDED = new Error('the call has ended');
/** Before the first byte a call is sent once more after a new placement. */
const PLACEMENTS = 2;
/** A pooled connection that fails this soon was closed by the engine while it idled. */
const STALE_MS = 1000;

/**
 * A call on its way to an engine and back: a slot, the engine's answer, and one more try while nothing of it was said. To a
 * resident with a free slot all of it happens at once; only what has to wait makes promises.
 */
export class Serving {
  readonly #o: ServingOptions;
  #wanted: Wanted;
  #placements = 0;
  #pending: PendingAdmission | undefined;
  #lease: Lease | undefined;
  #relay: Relay | undefined;
  /** The request under way is in the caller's own protocol. */
  #native: NativeRequest | undefined;
  #sentAtMs = 0;
  /** This placement's request goes over a connection that nobody used before. */
  #fresh = false;
  #over = false;

  constructor(options: ServingOptions) {
    this.#o = options;
    this.#wanted = options.wanted;
  }

  start(): void {
    this.#o.client.whenLeft = () => this.#o.guard(() => this.#left());
    this.#admit();
  }

  /** The call has ended: whatever it still holds is let go. */
  release(): void {
    this.#over = true;
    this.#o.hold.stop();
    this.#pending?.leave();
    this.#relay?.abort(ENDED);
    this.#lease?.release();
  }

  #left(): void {
    this.#pending?.leave();
    this.#relay?.abort(LEFT);
  }

  #admit(): void {
    const { admission, client, hold, guard } = this.#o;
    this.#placements += 1;
    if (client.left) {
      this.#notAdmitted({ kind: 'left' });
      return;
    }
    const lease = admission.grantNow(this.#wanted);
    if (lease) {
      this.#admitted({ lease });
      return;
    }
    this.#pending = admission.enqueue(this.#wanted, { onView: (view) => hold.onView(view) });
    void this.#pending.ended.then((end) => guard(() => this.#waited(end)));
  }

  #waited(end: AdmissionEnd): void {
    this.#pending = undefined;
    if (end.kind !== 'admitted') this.#notAdmitted(end);
    else if (this.#over) end.call.lease.release();
    else this.#admitted(end.call);
  }

  #notAdmitted(end: Exclude<AdmissionEnd, { kind: 'admitted' }>): void {
    const { record } = this.#o;
    record.queued(end.queuedAtMs, end.place);
    if (end.kind === 'left') {
      this.#o.end({ outcome: 'abandoned' });
      return;
    }
    record.refusedBy(end.decisionId);
    this.#o.end({ outcome: 'refused', error: end.error });
  }

  #admitted(call: AdmittedCall): void {
    const { record, hold, client, whenLoaded } = this.#o;
    this.#lease = call.lease;
    record.admitted(call);
    hold.admitted();
    if (!client.headSent && record.attempts === 0) this.#sayWhere(call);
    if (!whenLoaded) {
      this.#send();
      return;
    }
    // No engine has to say anything: the model is loaded, and that was all.
    answerLoaded(client, this.#o.body.stream, whenLoaded);
    this.#o.end({ outcome: 'completed' });
  }

  #sayWhere(call: AdmittedCall): void {
    const { client, protocol } = this.#o;
    const { workerId, resident } = call.lease;
    const cold = coldSeconds(call);
    client.header('x-berth-model', `${resident.modelKey}:${resident.artifact}`);
    client.header('x-berth-worker', workerId);
    client.header('x-berth-cold', cold);
    protocol?.coldSeconds?.(Number(cold));
  }

  /** Over a pooled connection; when that was dead already, once more over a new one. */
  #send(): void {
    const { protocol, resolved, upload, guard } = this.#o;
    const lease = this.#lease;
    if (!lease) return;
    const { modelKey } = resolved.model;
    if (upload) {
      upload.forEngine(modelKey).then(
        (bytes) => guard(() => this.#sendForm(lease, bytes)),
        (error: unknown) =>
          guard(() => {
            throw error;
          }),
      );
      return;
    }
    const native = this.#natively(lease);
    this.#native = native;
    protocol?.asks?.(native !== undefined);
    const { body, route } = native ?? this.#o;
    this.#dispatch(lease.resident, {
      route,
      body,
      pieces: bodyForEngine(body, modelKey, native === undefined),
    });
  }

  /** The form was read from the disk: its caller may have left meanwhile. */
  #sendForm({ resident }: Lease, bytes: Buffer): void {
    if (this.#over) return;
    const { client, route, body } = this.#o;
    if (client.left) this.#o.end({ outcome: 'abandoned' });
    else this.#dispatch(resident, { route, body, pieces: [bytes] });
  }

  #dispatch(
    resident: Resident,
    asked: { readonly route: EngineRoute; readonly body: CallBody; readonly pieces: readonly Buffer[] },
  ): void {
    const { client, record, hold, req, engines, now, guard } = this.#o;
    const { route, body, pieces } = asked;
    const bodyBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const headers = upstreamHeaders(req.headers, engines.key(resident.residentId), bodyBytes);
    const request = { path: route.path, method: 'POST', headers, body: pieces, bodyBytes } as const;
    this.#sentAtMs = now();
    record.forwarded();
    this.#relay = new Relay({
      client,
      stream: body.stream,
      dropUsageChunk: body.stream && !body.includeUsage,
      native: this.#native !== undefined,
      body: body.bytes,
      onFirstByte: () => {
        hold.stop();
        record.firstByte();
      },
      onEnd: (end) => guard(() => this.#relayed(resident, end)),
    });
    const pool = engines.of(resident);
    if (this.#fresh) pool.dispatchFresh(request, this.#relay);
    else pool.dispatch(request, this.#relay);
  }

  /** The caller's own route, where the engine has it. */
  #natively({ workerId, resident }: Lease): NativeRequest | undefined {
    const { native, speaks, engines } = this.#o;
    if (!native || engines.lacks(resident.residentId, native.route.path)) return undefined;
    return speaks(workerId, resident, native.capability) ? native : undefined;
  }

  #relayed(resident: Resident, end: RelayEnd): void {
    const { client, now } = this.#o;
    const stale = end.kind === 'silent' && !end.refusedConnection && now() - this.#sentAtMs < STALE_MS;
    if (stale && !this.#fresh && !client.left && !this.#over) {
      this.#fresh = true;
      this.#send();
      return;
    }
    if (this.#native && end.kind === 'engine-error' && end.missing && !client.left && !this.#over) {
      // Its probe promised a route that it has not: what it does have is asked instead.
      this.#o.engines.noteLacking(resident.residentId, this.#native.route.path);
      this.#send();
      return;
    }
    this.#lease?.release();
    if (!this.#over) this.#came(resident, end);
  }

  #came(resident: Resident, end: RelayEnd): void {
    const mayRetry = this.#placements < PLACEMENTS;
    switch (end.kind) {
      case 'answered':
        this.#o.end({ outcome: 'completed', counted: end.counted });
        return;
      case 'left':
        this.#o.end({ outcome: 'abandoned', counted: end.counted });
        return;
      case 'engine-error':
        if (end.loading && mayRetry) this.#again(resident, end.error.message);
        else if (!mayRetry || !this.#placeLarger(resident, end.error))
          this.#o.end({ outcome: 'failed', error: end.error });
        return;
      case 'silent':
        if (mayRetry && !this.#o.client.left) this.#again(resident, end.why);
        else this.#o.end({ outcome: 'failed', error: engineFailed(resident, end.why) });
        return;
      case 'broken':
        this.#o.end({ outcome: 'failed', error: engineFailed(resident, end.why), counted: end.counted });
        return;
    }
  }

  /** The engine was gone before it had said anything: another may serve the call, or this one once it is up again. */
  #again(resident: Resident, why: string): void {
    const { logger, admission, wanted } = this.#o;
    const { residentId } = resident;
    logger.warn({ call: wanted.callId, resident: residentId, why }, 'an engine failed before its first byte');
    admission.suspect(residentId);
    this.#fresh = false;
    this.#admit();
  }

  /**
   * The estimate before admission may be below what the engine counts. A prompt that is too long for the loaded context
   * and not for the model is placed again, with the exact count.
   * @returns false when a larger context is not to be had.
   */
  #placeLarger(resident: Resident, error: BerthError): boolean {
    const { model, ask } = this.#o.resolved;
    const promptTokens = error.details?.['promptTokens'];
    if (error.code !== 'context_length_exceeded' || typeof promptTokens !== 'number') return false;
    if (typeof ask.context === 'number') return false;
    const artifact = model.artifacts.find(({ label }) => label === resident.artifact);
    const trained = artifact?.geometry?.trainedContextTokens ?? 0;
    const most = ask.context === 'auto' ? trained : Math.min(trained, ask.context.max);
    if (promptTokens >= most || resident.contract.contextTokens >= most) return false;
    this.#wanted = { ...this.#wanted, promptTokens };
    this.#fresh = false;
    this.#admit();
    return true;
  }
}

/** The answer to a call that asked for nothing but a load, or for its end. */
export function answerLoaded(client: CallClient, stream: boolean, answer: () => Buffer): void {
  const json = [['content-type', 'application/json; charset=utf-8']] as const;
  client.answer(stream ? STREAM_HEADERS : json, answer());
}

const coldSeconds = ({ decidedAtMs, readyAtMs }: AdmittedCall): string =>
  decidedAtMs === undefined || readyAtMs === undefined ? '0' : ((readyAtMs - decidedAtMs) / 1000).toFixed(1);

const engineFailed = (resident: Resident, why: string): BerthError =>
  berthError(
    'engine_failed',
    `The engine that serves "${resident.modelKey}" failed under this call: ${why}. The call was not finished; ask again.`,
    { details: { residentId: resident.residentId } },
  );
