import type { IncomingMessage, ServerResponse } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import { callId } from '#domain/ids.js';
import { resolveModel } from '#domain/catalog/catalog.js';
import { newId } from '#runtime/ids.js';
import { SlotList } from '#runtime/slot-list.js';
import type { Access, Caller, Refusal } from '../access/access.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Metrics } from '../live/metrics.js';
import { sendFailure, sendJson } from './answers.js';
import { type CallDeps, ServedCall } from './call.js';
import { answerCors } from './cors.js';
import { ENDPOINTS, type Endpoint, errorShapeOf } from './endpoints.js';
import type { ModelVerdicts } from './model-verdicts.js';
import { modelEntry, modelList, type OpenModels, openTo, type VerdictOf } from './models.js';
import { answerList, answerOther, answerShow, OLLAMA_LISTS, OLLAMA_SHOW } from './protocols/ollama/routes.js';
import { unknownModel } from './resolve.js';

export interface GatewayOptions extends CallDeps {
  readonly access: Pick<Access, 'calls' | 'allowedOrigin' | 'interimAnswers'>;
  readonly fleet: Fleet;
  readonly health: () => { readonly status: string };
  readonly metrics: Pick<Metrics, 'contentType' | 'render'>;
  readonly verdicts: Pick<ModelVerdicts, 'reader'>;
}

const MODELS = '/v1/models';
const POLL_MS = 20;

/** The data plane: takes `/v1/*` and `/health` before any framework sees them. */
export class Gateway {
  readonly #o: GatewayOptions;
  readonly #calls = new SlotList<ServedCall>();
  #stopping = false;

  constructor(options: GatewayOptions) {
    this.#o = options;
  }

  get callsUnderWay(): number {
    return this.#calls.size;
  }

  /** @param path the route that the URL means */
  handle(req: IncomingMessage, res: ServerResponse, path: string): void {
    if (answerCors(this.#o.access, req, res)) return;
    if (path === '/health') {
      this.#health(req, res);
      return;
    }
    const entry = this.#o.access.calls({ peer: req.socket.remoteAddress, headers: req.headers });
    if (!entry.ok) {
      this.#keepOut(req, res, path, entry.error);
      return;
    }
    const endpoint = ENDPOINTS.get(path);
    if (endpoint) this.#call(req, res, endpoint, entry.value);
    else if (path === '/metrics') this.#metrics(req, res);
    else if (path === OLLAMA_SHOW && req.method === 'POST') {
      void answerShow(openTo(this.#o.fleet, entry.value), req, res, idHeader());
    } else if (path === OLLAMA_SHOW) {
      this.#answer(req, res, () => this.#notAllowed(res, path, 'POST', req.method));
    } else this.#answer(req, res, () => this.#other(req, res, path, openTo(this.#o.fleet, entry.value)));
  }

  #metrics(req: IncomingMessage, res: ServerResponse): void {
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      this.#answer(req, res, () => this.#notAllowed(res, '/metrics', 'GET, HEAD', req.method));
      return;
    }
    req.resume();
    const { metrics } = this.#o;
    metrics.render().then(
      (text) =>
        res
          .writeHead(200, { ...Object.fromEntries(idHeader()), 'content-type': metrics.contentType })
          .end(text),
      (error: unknown) => {
        this.#o.logger.error({ err: error }, 'the metrics could not be put together');
        this.#fail(
          res,
          '/metrics',
          berthError('internal', 'The metrics could not be put together. See the log.'),
        );
      },
    );
  }

  /** Nothing new is taken; what is under way has until the deadline, and is then ended with an error of its protocol. */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping = true;
    const until = Date.now() + deadlineMs;
    while (this.#calls.size > 0 && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    for (const call of [...this.#calls]) call.stop(stopping());
  }

  #call(req: IncomingMessage, res: ServerResponse, endpoint: Endpoint, caller: Caller): void {
    if (req.method !== 'POST') {
      this.#answer(req, res, () => this.#notAllowed(res, endpoint.path, 'POST', req.method));
      return;
    }
    if (this.#stopping) {
      res.setHeader('connection', 'close');
      this.#answer(req, res, () => this.#fail(res, endpoint.path, stopping()));
      return;
    }
    const call = new ServedCall(this.#o, { req, res, endpoint, caller }, this.#ended);
    this.#calls.add(call);
    call.serve();
  }

  readonly #ended = (call: ServedCall): void => void this.#calls.delete(call);

  /** Wrong keys are answered late; nobody else is. */
  #keepOut(req: IncomingMessage, res: ServerResponse, path: string, refusal: Refusal): void {
    const answer = () =>
      this.#answer(req, res, () => this.#fail(res, path, refusal.error, challenge(refusal)));
    if (refusal.delayMs === 0) {
      answer();
      return;
    }
    req.resume();
    const timer = setTimeout(answer, refusal.delayMs);
    res.once('close', () => clearTimeout(timer));
  }

  #other(req: IncomingMessage, res: ServerResponse, path: string, open: OpenModels): void {
    if (path === '/api' || path.startsWith('/api/')) {
      this.#ollama(req, res, path, open);
      return;
    }
    const isModels = path === MODELS || path.startsWith(`${MODELS}/`);
    if (!isModels) {
      const message = `There is no ${req.method ?? ''} ${path.slice(0, 200)} here. Endpoints: ${MODELS}, ${[...ENDPOINTS.keys()].join(', ')}.`;
      this.#fail(res, path, berthError('not_found', message));
      return;
    }
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      this.#notAllowed(res, path, 'GET, HEAD', req.method);
      return;
    }
    if (path === MODELS) sendJson(res, 200, modelList(open, this.#verdicts(open)), idHeader());
    else this.#model(res, path.slice(MODELS.length + 1), open);
  }

  #model(res: ServerResponse, encoded: string, open: OpenModels): void {
    const { models } = open;
    const name = decoded(encoded);
    const found = resolveModel(
      [...models.values()].map((servable) => servable.model),
      name,
    );
    const servable = found && models.get(found.modelKey);
    if (servable) sendJson(res, 200, modelEntry(open, servable, this.#verdicts(open)), idHeader());
    else this.#fail(res, MODELS, unknownModel(name, models));
  }

  /** The sentence of a verdict may name models that are in the way: a key of some models does not get it. */
  #verdicts(open: OpenModels): VerdictOf {
    const read = this.#o.verdicts.reader();
    if (open === this.#o.fleet) return read;
    return (servable) => {
      const { reason: _, ...rest } = read(servable);
      return rest;
    };
  }

  #ollama(req: IncomingMessage, res: ServerResponse, path: string, open: OpenModels): void {
    if (OLLAMA_LISTS.has(path)) {
      if (req.method === 'GET' || req.method === 'HEAD') answerList(open, path, res, idHeader());
      else this.#notAllowed(res, path, 'GET, HEAD', req.method);
    } else answerOther(path, res, idHeader());
  }

  /** The error as the protocol of its path says it. */
  #fail(res: ServerResponse, path: string, error: BerthError, more: [string, string][] = []): void {
    const headers = idHeader();
    const id = headers[0]?.[1] ?? '';
    sendFailure(res, error, errorShapeOf(path).body(error, id), [...headers, ...more]);
  }

  #notAllowed(res: ServerResponse, path: string, allow: string, method: string | undefined): void {
    if (method === 'OPTIONS') {
      res.writeHead(204, { ...Object.fromEntries(idHeader()), allow: `${allow}, OPTIONS` }).end();
      return;
    }
    const message = `${path} does not take ${method ?? 'this method'}. It takes ${allow}.`;
    this.#fail(res, path, berthError('method_not_allowed', message), [['allow', allow]]);
  }

  /** Open to everybody, since whoever balances or watches must be able to ask. */
  #health(req: IncomingMessage, res: ServerResponse): void {
    this.#answer(req, res, () => {
      if (req.method !== 'GET' && req.method !== 'HEAD')
        this.#notAllowed(res, '/health', 'GET, HEAD', req.method);
      else sendJson(res, 200, this.#o.health(), idHeader());
    });
  }

  /** Answers at once; a body that nobody reads must not hold the connection up. */
  #answer(req: IncomingMessage, _res: ServerResponse, answer: () => void): void {
    req.resume();
    answer();
  }
}

/** For what is no call: an id all the same, by which its answer can be spoken of. */
function idHeader(): [string, string][] {
  const id = callId(newId());
  return [
    ['x-berth-call', id],
    ['x-request-id', id],
  ];
}

const challenge = ({ error }: Refusal): [string, string][] =>
  error.code === 'invalid_api_key' ? [['www-authenticate', 'Bearer']] : [];

export const stopping = (): BerthError =>
  berthError('shutting_down', 'Berth is stopping. Ask again when it is back.', { retryAfterSeconds: 5 });

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign: the name as it came, which no model has.
    return text;
  }
}
