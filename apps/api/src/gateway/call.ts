import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHmac } from 'node:crypto';
import { type BerthError, berthError } from '#domain/errors.js';
import { callId, type CallId, type ModelKey, UNRESOLVED } from '#domain/ids.js';
import type { Result } from '#domain/result.js';
import type { Writable } from '#domain/writable.js';
import { newId } from '#runtime/ids.js';
import { NO_SLOT, type Slotted } from '#runtime/slot-list.js';
import type { Access, Caller } from '../access/access.js';
import type { TicketView } from '../admission/port.js';
import type { EarlyRefusal } from '../recorder/access-log.js';
import type { CallEnd, CallRecord, CallStart } from '../recorder/call-record.js';
import type { Recorder } from '../recorder/recorder.js';
import { FilteredClient } from './answer-filter.js';
import { statusOf } from './answers.js';
import { type Body, linger, receiveBody, type Received } from './body.js';
import { type CallBody, readCallBody } from './call-body.js';
import { CallClient } from './client.js';
import type { Endpoint } from './endpoints.js';
import { CHAT, type EngineRoute } from './engine-routes.js';
import { Hold } from './hold.js';
import { certainlyTooLong } from './prompt-bound.js';
import { inFieldsOf, type Prepared, type ProtocolCall } from './protocols/protocol.js';
import { ReasoningFilter } from './reasoning/reasoning-filter.js';
import type { Resolved, Resolver } from './resolve.js';
import { answerLoaded, type Ending, type NativeRequest, Serving, type ServingDeps } from './serving.js';
import { receiveUpload, type Upload, type Uploaded } from './upload.js';
import { isBackground, wantedOf } from './wanted.js';

export interface CallDeps extends ServingDeps {
  readonly access: Pick<Access, 'interimAnswers'>;
  readonly recorder: Recorder;
  readonly resolver: Resolver;
  readonly progress: (view: TicketView) => number | undefined;
  /** Bytes of text that make a token of the model, as its last calls had it; undefined before any. */
  readonly bytesPerToken: (model: ModelKey) => number | undefined;
  /** Residents of the model go as soon as no call is on them. */
  readonly unloadSoon: (model: ModelKey, call: CallId) => void;
  readonly groupKey: string;
  /** The folder where forms are kept while their calls wait. */
  readonly uploads: string;
  /** Told of a call that was refused before there was anything to record of it. */
  readonly onEarlyRefusal: (refusal: EarlyRefusal) => void;
}

/** One call from its first byte to its end. */
export class ServedCall implements Slotted {
  slot = NO_SLOT;
  readonly id = callId(newId());
  readonly client: CallClient;
  readonly #d: CallDeps;
  readonly #req: IncomingMessage;
  readonly #endpoint: Endpoint;
  readonly #caller: Caller;
  readonly #receivedAtMs: number;
  readonly #onEnd: (call: ServedCall) => void;
  readonly #protocol: ProtocolCall | undefined;
  readonly #reasoning: ReasoningFilter | undefined;
  /** The engine's route that serves it. */
  #route: EngineRoute;
  #whenLoaded: Prepared['whenLoaded'];
  #native: NativeRequest | undefined;
  #upload: Upload | undefined;
  #unloads = false;
  #stream = false;
  #body: Body | undefined;
  #record: CallRecord | undefined;
  #serving: Serving | undefined;
  #over = false;

  constructor(
    deps: CallDeps,
    came: {
      readonly req: IncomingMessage;
      readonly res: ServerResponse;
      readonly endpoint: Endpoint;
      readonly caller: Caller;
    },
    onEnd: (call: ServedCall) => void,
  ) {
    const { req, res, endpoint, caller } = came;
    this.#d = deps;
    this.#req = req;
    this.#endpoint = endpoint;
    this.#caller = caller;
    this.#onEnd = onEnd;
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

  serve(): void {
    if (this.#endpoint.form) {
      receiveUpload(this.#req, this.#d.uploads, this.id, (form) => this.#guard(() => this.#uploaded(form)));
      return;
    }
    this.#body = receiveBody(this.#req, (received) => this.#guard(() => this.#received(received)));
  }

  /** The api stops: what is under way ends now, with the protocol's own error. */
  stop(error: BerthError): void {
    this.#end({ outcome: 'failed', error });
  }

  #received(received: Received): void {
    const bytes = this.#came(received);
    if (!bytes) return;
    const body = this.#read(bytes);
    if (body.ok) this.#begin(body.value);
    else this.#end({ outcome: 'refused', error: body.error });
  }

  /** What the front door must know of a form is its model; the form itself waits on disk. */
  #uploaded(uploaded: Uploaded): void {
    if (this.#over) {
      if (uploaded?.ok) void uploaded.value.remove();
      return;
    }
    const upload = this.#came(uploaded);
    if (!upload) return;
    this.#upload = upload;
    const body = readCallBody(Buffer.from(JSON.stringify({ model: upload.fields.model })), this.#endpoint);
    if (body.ok) this.#begin(body.value);
    else this.#end({ outcome: 'refused', error: body.error });
  }

  #came<T>(received: Result<T> | undefined): T | undefined {
    if (received?.ok) return received.value;
    if (!received) {
      this.#end({ outcome: 'abandoned' });
      return undefined;
    }
    // A body that stalled may go on at any time: the connection cannot serve another request.
    if (received.error.code === 'request_timeout') this.client.header('connection', 'close');
    this.#end({ outcome: 'refused', error: received.error });
    linger(this.#req);
    return undefined;
  }

  /** What came, and where another protocol is spoken, what engines get for it. */
  #read(bytes: Buffer): Result<CallBody> {
    const came = readCallBody(bytes, this.#endpoint);
    if (!came.ok || !this.#protocol) return came;
    const prepared = this.#protocol.prepare(came.value.bytes);
    if (!prepared.ok) return prepared;
    this.#route = prepared.value.target;
    this.#whenLoaded = prepared.value.whenLoaded;
    this.#unloads = prepared.value.unloads ?? false;
    this.#native = nativeRequest(prepared.value, came.value);
    return readCallBody(prepared.value.bytes, this.#route);
  }

  #begin(body: CallBody): void {
    this.#stream = body.stream;
    this.#reasoning?.expect(body.choices);
    const resolved = this.#d.resolver.resolve(body, this.#endpoint, this.#caller);
    const group = this.#group(body.session);
    this.#record = this.#d.recorder.begin(this.#start(body, resolved.ok ? resolved.value : undefined, group));
    const error = resolved.ok ? certainlyTooLong(body, this.#route, resolved.value.model) : resolved.error;
    if (error) this.#end({ outcome: 'refused', error });
    else if (resolved.ok && this.#unloads && this.#whenLoaded) {
      this.#d.unloadSoon(resolved.value.model.modelKey, this.id);
      answerLoaded(this.client, this.#stream, this.#whenLoaded);
      this.#end({ outcome: 'completed' });
    } else if (resolved.ok) this.#place(this.#record, body, resolved.value, group);
  }

  #start(body: CallBody, resolved: Resolved | undefined, group: string | undefined): CallStart {
    const { intent, maxTokens, stream, promptBytes } = body;
    const background = isBackground(body);
    const start: Writable<CallStart> = {
      callId: this.id,
      modelKey: resolved?.model.modelKey ?? UNRESOLVED,
      endpoint: this.#endpoint.path,
      background,
      stream,
      promptBytes,
      receivedAtMs: this.#receivedAtMs,
    };
    const idleUnloadSeconds = resolved?.options.settings.idleUnloadSeconds;
    if (this.#caller.keyId !== undefined) start.keyId = this.#caller.keyId;
    if (maxTokens !== undefined) start.maxTokens = maxTokens;
    if (body.pictures > 0) start.pictures = true;
    if (idleUnloadSeconds !== undefined) start.idleUnloadSeconds = idleUnloadSeconds;
    if (intent !== undefined && background) start.intent = intent;
    if (group !== undefined) start.group = group;
    return start;
  }

  /** Calls of one session keep their order; what it is called stays here. */
  #group(session: string | undefined): string | undefined {
    const header = this.#req.headers['x-session-id'];
    const name = typeof header === 'string' && header !== '' ? header : session;
    if (name === undefined || name === '') return undefined;
    return createHmac('sha256', this.#d.groupKey).update(name).digest('hex').slice(0, 32);
  }

  #place(record: CallRecord, body: CallBody, resolved: Resolved, group: string | undefined): void {
    const { access, admission, engines, logger, now, progress, speaks } = this.#d;
    const hold = new Hold({
      client: this.client,
      stream: body.stream && this.#endpoint.protocol?.waits !== 'by-interim-answers',
      modelName: body.modelName,
      receivedAtMs: this.#receivedAtMs,
      now,
      progress,
      interim: this.#req.httpVersionMinor > 0 && access.interimAnswers,
    });
    this.#serving = new Serving({
      admission,
      engines,
      logger,
      now,
      speaks,
      req: this.#req,
      client: this.client,
      record,
      body,
      resolved,
      wanted: wantedOf(body, resolved, {
        callId: this.id,
        receivedAtMs: this.#receivedAtMs,
        group,
        bytesPerToken: this.#d.bytesPerToken(resolved.model.modelKey),
      }),
      route: this.#route,
      hold,
      protocol: this.#protocol,
      whenLoaded: this.#whenLoaded,
      native: this.#native,
      upload: this.#upload,
      end: (ending) => this.#end(ending),
      guard: (step) => this.#guard(step),
    });
    this.#serving.start();
  }

  /** Runs a step; what nobody foresaw ends the call, and its caller is answered. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (cause) {
      this.#d.logger.error({ err: cause, call: this.id }, 'a call failed inside the api');
      const message = `Berth failed on this call. Its log has the reason under ${this.id}.`;
      this.#end({ outcome: 'failed', error: berthError('internal', message) });
    }
  }

  /** The one end of a call: what its caller is told, what is recorded of it, and what it held. A second does nothing. */
  #end({ outcome, error: said, counted }: Ending): void {
    if (this.#over) return;
    this.#over = true;
    const error = said && this.#protocol ? inFieldsOf(this.#protocol, said) : said;
    if (error) this.client.fail(error, this.#stream);
    // What the caller saw: after a streamed head the status was 200, whatever came of it.
    const status = error && !this.client.headSent ? statusOf(error) : this.client.status;
    if (this.#record) {
      const end: Writable<CallEnd> = { outcome, status, bytesOut: this.client.bytesOut };
      if (error) end.error = error;
      if (counted) {
        end.tokens = counted.tokens;
        end.timings = counted.timings;
      }
      this.#record.finish(end);
    } else if (error) this.#refusedEarly(error);
    this.#serving?.release();
    // After the serving: an engine's request that goes on would send them.
    this.#body?.release();
    void this.#upload?.remove();
    this.#onEnd(this);
  }

  /** Nothing is known of it that an event could say: it has a line in the log, and is counted. */
  #refusedEarly(error: BerthError): void {
    const { now, onEarlyRefusal } = this.#d;
    onEarlyRefusal({
      callId: this.id,
      endpoint: this.#endpoint.path,
      error,
      receivedAtMs: this.#receivedAtMs,
      nowMs: now(),
    });
  }
}

/** What an engine that has the caller's own route is asked; what cannot be read in its form is only translated. */
function nativeRequest({ native }: Prepared, came: CallBody): NativeRequest | undefined {
  if (!native) return undefined;
  const { capability, target: route, bytes } = native;
  // Mostly it is what came, which is read already; whether it is streamed is the route's to say.
  if (bytes === came.bytes) {
    return { capability, route, body: { ...came, stream: came.stream && route.streams } };
  }
  const body = readCallBody(bytes, route);
  return body.ok ? { capability, route, body: body.value } : undefined;
}
