import type { ErrorShape } from '../../answer-filter.js';

/** A text, never an object: Ollama's client prints it as it stands. */
export const OLLAMA_ERRORS: ErrorShape = {
  body: (error) => ({ error: error.message }),
  frame: (error) => `${JSON.stringify({ error: error.message })}\n`,
};
