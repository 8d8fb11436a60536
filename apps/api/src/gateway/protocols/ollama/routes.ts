import type { IncomingMessage, ServerResponse } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import { sendJson, statusOf } from '../../answers.js';
import { readBody } from '../../body.js';
import { abilitiesOf, type OpenModels } from '../../models.js';
import { resolveTagged, unknownModel } from '../../resolve.js';
import { parsedObject, textOf } from '../json.js';
import { bad } from '../protocol.js';
import { OLLAMA_ERRORS } from './errors.js';
import { OLLAMA_VERSION, ps, show, tags } from './views.js';

type Headers = readonly (readonly [string, string])[];

const LISTS: Readonly<Record<string, (fleet: OpenModels) => unknown>> = {
  '/api/tags': tags,
  '/api/ps': ps,
  '/api/version': () => ({ version: OLLAMA_VERSION }),
};

/** What Ollama does with files of models; Berth has commands for it. */
const OF_FILES = new Set(['pull', 'push', 'create', 'copy', 'delete', 'blobs']);

export const OLLAMA_LISTS: ReadonlySet<string> = new Set(Object.keys(LISTS));
const MOST_ASKED_BYTES = 64 * 1024;
export const OLLAMA_SHOW = '/api/show';

export function answerList(fleet: OpenModels, path: string, res: ServerResponse, headers: Headers): void {
  sendJson(res, 200, LISTS[path]?.(fleet), headers);
}

/** `/api/show`, the one view whose question is a body. */
export async function answerShow(
  fleet: OpenModels,
  req: IncomingMessage,
  res: ServerResponse,
  headers: Headers,
): Promise<void> {
  const fail = (error: BerthError) =>
    sendJson(res, statusOf(error), OLLAMA_ERRORS.body(error, ''), [...headers, ['x-should-retry', 'false']]);
  const read = await readBody(req);
  if (!read) return;
  if (!read.ok) {
    res.setHeader('connection', 'close');
    fail(read.error);
    return;
  }
  const body = read.value.length <= MOST_ASKED_BYTES ? parsedObject(read.value.toString('utf8')) : undefined;
  const name = textOf(body?.['model']) ?? textOf(body?.['name']);
  if (name === undefined || name === '') {
    fail(
      bad('The body must be a JSON object whose "model" names a model; GET /api/tags lists them.', 'model'),
    );
    return;
  }
  const { models } = fleet;
  const all = [...models.values()].map(({ model }) => model);
  const found = resolveTagged(all, name);
  const servable = found && models.get(found.modelKey);
  if (servable) sendJson(res, 200, show(servable, abilitiesOf(fleet, servable)), headers);
  else fail(unknownModel(name, models));
}

/** Other paths below `/api`: what is not done here, and how it is. */
export function answerOther(path: string, res: ServerResponse, headers: Headers): void {
  const what = path.split('/')[2] ?? '';
  if (OF_FILES.has(what)) {
    const message = `Berth does not ${what} models over Ollama's API. See \`berth help\` for its own commands.`;
    sendJson(res, 501, { error: message }, [...headers, ['x-should-retry', 'false']]);
    return;
  }
  const error = berthError('not_found', `There is no ${path.slice(0, 200)} here.`);
  sendJson(res, statusOf(error), OLLAMA_ERRORS.body(error, ''), [...headers, ['x-should-retry', 'false']]);
}
