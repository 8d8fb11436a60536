/** An answer that is an error, in OpenAI's envelope with llama-server's numeric `code`. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  body(): { error: Record<string, unknown> } {
    return { error: { code: this.status, message: this.message, type: this.type, ...this.more } };
  }
}

export const badRequest = (message: string, param?: string): RequestError =>
  new RequestError(400, 'invalid_request_error', message, param === undefined ? {} : { param });

/** The gateway and clients read the two figures, and the words. */
export const tooLong = (promptTokens: number, contextTokens: number): RequestError =>
  new RequestError(
    400,
    'exceed_context_size_error',
    `This model's maximum context length is ${contextTokens} tokens. However, your input resulted in ${promptTokens} tokens. Please shorten it.`,
    { n_prompt_tokens: promptTokens, n_ctx: contextTokens },
  );

export const notFound = (what: string): RequestError =>
  new RequestError(404, 'not_found_error', `There is no ${what} here.`);

export const notSupported = (kind: string, wanted: string): RequestError =>
  new RequestError(
    400,
    'invalid_request_error',
    `This model was started for ${kind}; it does not serve ${wanted}.`,
  );
