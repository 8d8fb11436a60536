import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHmac } from 'node:crypto';
import { type BerthError, berthError } from '#domain/errors.js';
import { callId, type CallId, type ModelKey, UNRESOLVED } from '#domain/ids.js';
import type { Result } from '#domain/result.js';
import type { Resident } from '#domain/worker/state.js';
import { newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { Caller } from '../access/access.js';
import type { Admission } from '../admission/admission.js';
import type { AdmissionEnd, AdmittedCall, TicketView, Wanted } from '../admission/port.js';
import type { EarlyRefusal } from '../recorder/access-log.js';
import type { CallEnd, CallRecord } from '../recorder/call-record.js';
import type { Recorder } from '../recorder/recorder.js';
import { statusOf } from './answers.js';
import { linger, readBody } from './body.js';
import { bodyForEngine, type CallBody, readCallBody } from './call-body.js';
import { FilteredClient } from './answer-filter.js';
import { CallClient } from './client.js';
import type { Endpoint } from './endpoints.js';
import { CHAT, type EngineRoute } from './engine-routes.js';
import type { Engines } from './engines.js';
import { STREAM_HEADERS, upstreamHeaders } from './headers.js';
import { Hold } from './hold.js';
import { certainlyTooLong } from './prompt-bound.js';
import type { Prepared, ProtocolCall } from './protocols/protocol.js';
import { ReasoningFilter } from './reasoning/reasoning-filter.js';
import { Relay, type RelayEnd } from './relay.js';
import type { Resolved, Resolver } from './resolve.js';

export interface CallDeps {
  readonly admission: Admission;
  readonly recorder: Recorder;
  readonly engines: Engines;
  readonly resolver: Resolver;
  readonly progress: (view: TicketView) => number | undefined;
  /** Residents of the model go as soon as no call is on them. */
  readonly unloadSoon: (model: ModelKey, call: CallId) => void;
  readonly groupKey: string;
  /** Told of a call that was refused before there was anything to record of it. */
  readonly onEarlyRefusal: (refusal: EarlyRefusal) => void;
  readonly logger: Logger;
  readonly now: () => number;
}

/** Before the first byte a call is sent once more after a new placement. */
const PLACEMENTS = 2;
/** A pooled connection that fails this soon was closed by the engine while it idled. */
const STALE_MS = 1000;
/** Estimates before any history: bytes per token of text, tokens per picture. */
const BYTES_PER_TOKEN = 4;
const TOKENS_PER_PICTURE = 1000;
const BACKGROUND = new Set(['grading', 'smoke-test', 'benchmark', 'warmup', 'background']);

/** One call from its first byte to its end. */
export class ServedCall {
  readonly id = callId(newId());
  readonly client: CallClient;
  readonly #d: CallDeps;
  readonly #req: IncomingMessage;
  readonly #endpoint: Endpoint;
  readonly #caller: Caller;
  readonly #receivedAtMs: number;
  #record: CallRecord | undefined;
  #relay: Relay | undefined;
  #stream = false;
  readonly #protocol: ProtocolCall | undefined;
  readonly #reasoning: ReasoningFilter | undefined;
  /** The engine's route that serves it. */
  #route: EngineRoute;
  #whenLoaded: Prepared['whenLoaded'];
  #unloads = false;

  constructor(deps: CallDeps, req: IncomingMessage, res: ServerResponse, endpoint: Endpoint, caller: Caller) {
    this.#d = deps;
    this.#req = req;
    this.#endpoint = endpoint;
    this.#caller = caller;
    this.#receivedAtMs = deps.now();
    this.#route = endpoint;
    this.#protocol = endpoint.protocol?.open({ callId: this.id, now: deps.now });
    this.#reasoning = endpoint.path === CHAT.path ? new ReasoningFilter() : undefined;
    const filter = this.#protocol ?? this.#reasoning;
    this.client = filter ? new FilteredClient(res, filter, this.id) : new CallClient(res);
    this.client.header('x-berth-call', this.id);
    this.client.header('x-request-id', this.id);
    for (const [name, value] of this.#protocol?.headers ?? []) this.client.header(name, value);
  }

  async serve(): Promise<void> {
    const read = await readBody(this.#req);
    if (!read) return;
    if (!read.ok) {
      // A body that stalled may go on at any time: the connection cannot serve another request.
      if (read.error.code === 'request_timeout') this.client.header('connection', 'close');
      this.#refuseEarly(read.error);
      linger(this.#req);
      return;
    }
    const body = this.#body(read.value);
    if (!body.ok) {
      this.#refuseEarly(body.error);
      return;
    }
    this.#stream = body.value.stream;
    this.#reasoning?.expect(body.value.choices);
    const resolved = this.#d.resolver.resolve(body.value, this.#endpoint, this.#caller);
    const group = this.#group(body.value.session);
    this.#record = this.#begin(body.value, resolved.ok ? resolved.value : undefined, group);
    const error = resolved.ok
      ? certainlyTooLong(body.value, this.#route, resolved.value.model)
      : resolved.error;
    if (error) this.#refuse(error);
    else if (resolved.ok && this.#unloads && this.#whenLoaded) {
      this.#d.unloadSoon(resolved.value.model.modelKey, this.id);
      this.#answerLoaded(this.#whenLoaded);
    } else if (resolved.ok) await this.#place(this.#record, body.value, resolved.value, group);
  }

  /** Nothing is known of it that an event could say: it has a line in the log, and is counted. */
  #refuseEarly(error: BerthError): void {
    this.client.fail(error, false);
    const { now, onEarlyRefusal } = this.#d;
    onEarlyRefusal({
      callId: this.id,
      endpoint: this.#endpoint.path,
      error,
      receivedAtMs: this.#receivedAtMs,
      nowMs: now(),
    });
  }

  /** What came, and where another protocol is spoken, what engines get for it. */
  #body(bytes: Buffer): Result<CallBody> {
    const came = readCallBody(bytes, this.#endpoint);
    if (!came.ok || !this.#protocol) return came;
    const prepared = this.#protocol.prepare(bytes);
    if (!prepared.ok) return prepared;
    this.#route = prepared.value.target;
    this.#whenLoaded = prepared.value.whenLoaded;
    this.#unloads = prepared.value.unloads ?? false;
    return readCallBody(prepared.value.bytes, this.#route);
  }

  /** The api stops: what is under way ends now, with the protocol's own error. */
  stop(error: BerthError): void {
    this.#relay?.abort(new Error(error.message));
    this.client.fail(error, this.#stream);
    this.#finish({ outcome: 'failed', status: this.#status(error), error });
  }

  /** For what nobody foresaw: the caller is answered and the call has its end. */
  failed(cause: unknown): void {
    this.#d.logger.error({ err: cause, call: this.id }, 'a call failed inside the api');
    const message = `Berth failed on this call. Its log has the reason under ${this.id}.`;
    const error = berthError('internal', message);
    this.client.fail(error, this.#stream);
    this.#finish({ outcome: 'failed', status: this.#status(error), error });
  }

  #begin(body: CallBody, resolved: Resolved | undefined, group: string | undefined): CallRecord {
    const { intent, maxTokens } = body;
    const idleUnloadSeconds = resolved?.options.settings.idleUnloadSeconds;
    return this.#d.recorder.begin({
      callId: this.id,
      modelKey: resolved?.model.modelKey ?? UNRESOLVED,
      endpoint: this.#endpoint.path,
      background: isBackground(intent),
      stream: body.stream,
      promptBytes: body.promptBytes,
      receivedAtMs: this.#receivedAtMs,
      ...(this.#caller.keyId === undefined ? {} : { keyId: this.#caller.keyId }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(idleUnloadSeconds === undefined ? {} : { idleUnloadSeconds }),
      ...(intent === undefined || !BACKGROUND.has(intent) ? {} : { intent }),
      ...(group === undefined ? {} : { group }),
    });
  }

  /** Calls of one session keep their order; what it is called stays here. */
  #group(session: string | undefined): string | undefined {
    const header = this.#req.headers['x-session-id'];
    const name = typeof header === 'string' && header !== '' ? header : session;
    if (name === undefined || name === '') return undefined;
    return createHmac('sha256', this.#d.groupKey).update(name).digest('hex').slice(0, 32);
  }

  async #place(
    record: CallRecord,
    body: CallBody,
    resolved: Resolved,
    group: string | undefined,
  ): Promise<void> {
    const { maxTokens } = body;
    let wanted: Wanted = {
      callId: this.id,
      model: resolved.model,
      ask: resolved.ask,
      settings: resolved.settings,
      options: resolved.options,
      background: isBackground(body.intent),
      promptTokens: Math.ceil(body.promptBytes / BYTES_PER_TOKEN) + body.pictures * TOKENS_PER_PICTURE,
      receivedAtMs: this.#receivedAtMs,
      ...(group === undefined ? {} : { group }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    };
    const hold = new Hold({
      client: this.client,
      stream: body.stream && this.#endpoint.protocol?.waits !== 'by-interim-answers',
      modelName: body.modelName,
      receivedAtMs: this.#receivedAtMs,
      now: this.#d.now,
      progress: this.#d.progress,
      interim: this.#req.httpVersionMinor > 0,
    });
    try {
      for (let placement = 1; ; placement += 1) {
        const end = await this.#admit(wanted, hold);
        if (end.kind !== 'admitted') {
          this.#notAdmitted(record, end);
          return;
        }
        record.admitted(end.call);
        hold.admitted();
        const again = await this.#forward(record, body, resolved, end.call, hold, placement < PLACEMENTS);
        if (!again) return;
        // Counted by the engine: the next placement is made for what the prompt really is.
        if (again.promptTokens !== undefined) wanted = { ...wanted, promptTokens: again.promptTokens };
      }
    } finally {
      hold.stop();
    }
  }

  async #admit(wanted: Wanted, hold: Hold): Promise<AdmissionEnd> {
    if (this.client.left) return { kind: 'left' };
    const lease = this.#d.admission.grantNow(wanted);
    if (lease) return { kind: 'admitted', call: { lease } };
    const pending = this.#d.admission.enqueue(wanted, { onView: (view) => hold.onView(view) });
    const forget = this.client.onLeave(() => pending.leave());
    const end = await pending.ended;
    forget();
    return end;
  }

  #notAdmitted(record: CallRecord, end: Exclude<AdmissionEnd, { kind: 'admitted' }>): void {
    record.queued(end.queuedAtMs, end.place);
    if (end.kind === 'left') {
      this.#finish({ outcome: 'abandoned', status: this.client.status });
      return;
    }
    record.refusedBy(end.decisionId);
    this.#refuse(end.error);
  }

  /** @returns undefined when the call has ended; else it is to be placed once more. */
  async #forward(
    record: CallRecord,
    body: CallBody,
    resolved: Resolved,
    admitted: AdmittedCall,
    hold: Hold,
    mayRetry: boolean,
  ): Promise<{ readonly promptTokens?: number } | undefined> {
    const { lease } = admitted;
    const { resident } = lease;
    if (!this.client.headSent && record.attempts === 0) {
      this.client.header('x-berth-model', `${resident.modelKey}:${resident.artifact}`);
      this.client.header('x-berth-worker', lease.workerId);
      this.client.header('x-berth-cold', coldSeconds(admitted));
      this.#protocol?.coldSeconds?.(Number(coldSeconds(admitted)));
    }
    if (this.#whenLoaded) {
      lease.release();
      this.#answerLoaded(this.#whenLoaded);
      return undefined;
    }
    let end: RelayEnd;
    try {
      end = await this.#send(record, resident, body, bodyForEngine(body, resolved.model.modelKey), hold);
    } finally {
      lease.release();
    }
    switch (end.kind) {
      case 'answered':
        this.#finish({ outcome: 'completed', status: this.client.res.statusCode, ...end.counted });
        return undefined;
      case 'left':
        this.#finish({ outcome: 'abandoned', status: this.client.status, ...end.counted });
        return undefined;
      case 'engine-error':
        if (end.loading && mayRetry) break;
        if (mayRetry) {
          const promptTokens = fitsLargerContext(end.error, resident, resolved);
          if (promptTokens !== undefined) return { promptTokens };
        }
        this.#fail(end.error);
        return undefined;
      case 'silent':
        if (mayRetry && !this.client.left) break;
        this.#fail(engineFailed(resident, end.why));
        return undefined;
      case 'broken': {
        const error = engineFailed(resident, end.why);
        this.client.fail(error, this.#stream);
        this.#finish({ outcome: 'failed', status: this.#status(error), error, ...end.counted });
        return undefined;
      }
    }
    const why = end.kind === 'silent' ? end.why : end.error.message;
    this.#d.logger.warn(
      { call: this.id, resident: resident.residentId, why },
      'an engine failed before its first byte',
    );
    this.#d.admission.suspect(resident.residentId);
    return {};
  }

  /** Over a pooled connection; when that was dead already, once more over a new one. */
  async #send(
    record: CallRecord,
    resident: Resident,
    body: CallBody,
    bytes: Buffer,
    hold: Hold,
  ): Promise<RelayEnd> {
    const { engines, now } = this.#d;
    const options = {
      client: this.client,
      stream: body.stream,
      dropUsageChunk: body.stream && !body.includeUsage,
      body: bytes,
      onFirstByte: () => {
        hold.stop();
        record.firstByte();
      },
    };
    const request = {
      path: this.#route.path,
      method: 'POST' as const,
      headers: upstreamHeaders(this.#req.headers, engines.key(resident.residentId), bytes.length),
      body: bytes,
    };
    const startedAtMs = now();
    record.forwarded();
    this.#relay = new Relay(options);
    engines.of(resident).dispatch(request, this.#relay);
    const end = await this.#relay.ended;
    const stale = end.kind === 'silent' && !end.refusedConnection && now() - startedAtMs < STALE_MS;
    if (!stale || this.client.left || record.ended) return end;
    record.forwarded();
    this.#relay = new Relay(options);
    engines.of(resident).dispatchFresh(request, this.#relay);
    return this.#relay.ended;
  }

  /** No engine has to say anything: the model is loaded, and that was all. */
  #answerLoaded(answer: () => Buffer): void {
    const bytes = answer();
    const headers = this.#stream
      ? STREAM_HEADERS
      : ([['content-type', 'application/json; charset=utf-8']] as const);
    this.client.answer(headers, bytes);
    this.#finish({ outcome: 'completed', status: 200 });
  }

  #refuse(error: BerthError): void {
    this.client.fail(error, this.#stream);
    this.#finish({ outcome: 'refused', status: this.#status(error), error });
  }

  #fail(error: BerthError): void {
    this.client.fail(error, this.#stream);
    this.#finish({ outcome: 'failed', status: this.#status(error), error });
  }

  /** What the caller saw: after a streamed head the status was 200, whatever came of it. */
  #status(error: BerthError): number {
    return this.client.headSent ? this.client.res.statusCode : statusOf(error);
  }

  #finish(end: CallEnd): void {
    this.#record?.finish({ ...end, bytesOut: this.client.bytesOut });
  }
}

const isBackground = (intent: string | undefined): boolean => intent !== undefined && BACKGROUND.has(intent);

/**
 * The estimate before admission may be below what the engine counts. A prompt that is too long for the loaded context
 * and not for the model is placed again, with the exact count.
 * @returns the prompt's tokens, or undefined when a larger context is not to be had.
 */
function fitsLargerContext(error: BerthError, resident: Resident, resolved: Resolved): number | undefined {
  if (error.code !== 'context_length_exceeded') return undefined;
  const promptTokens = error.details?.['promptTokens'];
  const { context } = resolved.ask;
  if (typeof promptTokens !== 'number' || typeof context === 'number') return undefined;
  const trained =
    resolved.model.artifacts.find(({ label }) => label === resident.artifact)?.geometry
      ?.trainedContextTokens ?? 0;
  const most = context === 'auto' ? trained : Math.min(trained, context.max);
  return promptTokens < most && resident.contract.contextTokens < most ? promptTokens : undefined;
}

const coldSeconds = ({ decidedAtMs, readyAtMs }: AdmittedCall): string =>
  decidedAtMs === undefined || readyAtMs === undefined ? '0' : ((readyAtMs - decidedAtMs) / 1000).toFixed(1);

const engineFailed = (resident: Resident, why: string): BerthError =>
  berthError(
    'engine_failed',
    `The engine that serves "${resident.modelKey}" failed under this call: ${why}. The call was not finished; ask again.`,
    { details: { residentId: resident.residentId } },
  );
