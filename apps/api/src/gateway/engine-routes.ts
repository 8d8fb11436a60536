import type { ModelKind } from '#domain/placement-terms.js';

/** A route that engines have, and what the front door must know of its bodies. */
export interface EngineRoute {
  readonly path: string;
  readonly kind: ModelKind;
  /** Fields whose text is the prompt, for its estimated length. */
  readonly promptFields: readonly string[];
  readonly streams: boolean;
}

export const CHAT: EngineRoute = {
  path: '/v1/chat/completions',
  kind: 'chat',
  promptFields: ['messages', 'tools'],
  streams: true,
};
export const COMPLETIONS: EngineRoute = {
  path: '/v1/completions',
  kind: 'chat',
  promptFields: ['prompt'],
  streams: true,
};
export const EMBEDDINGS: EngineRoute = {
  path: '/v1/embeddings',
  kind: 'embedding',
  promptFields: ['input'],
  streams: false,
};
export const RERANK: EngineRoute = {
  path: '/v1/rerank',
  kind: 'rerank',
  promptFields: ['query', 'documents'],
  streams: false,
};
/** A form with a file: what is heard in it, as text. */
export const TRANSCRIPTIONS: EngineRoute = {
  path: '/v1/audio/transcriptions',
  kind: 'chat',
  promptFields: [],
  streams: false,
};
/** Routes that some engines have beside the chat's; the others get what they say translated. */
export const NATIVE_MESSAGES: EngineRoute = {
  ...CHAT,
  path: '/v1/messages',
  promptFields: ['system', 'messages', 'tools'],
};
export const NATIVE_COUNT: EngineRoute = {
  ...NATIVE_MESSAGES,
  path: '/v1/messages/count_tokens',
  streams: false,
};
export const NATIVE_RESPONSES: EngineRoute = {
  ...CHAT,
  path: '/v1/responses',
  promptFields: ['instructions', 'input', 'tools'],
};
/** Counts the tokens of a chat body and generates nothing. */
export const COUNT: EngineRoute = { ...CHAT, path: '/v1/chat/completions/input_tokens', streams: false };
