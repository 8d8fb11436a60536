import { callEnding } from '../protocol/status.js';
import { invalid } from '../errors.js';
import type { Handler } from './server.js';

export interface Serializable {
  serializeBinary(): Uint8Array;
}

/** A method with one request and one answer. Whatever the work throws becomes the call's ending. */
export function unary<Request>(
  requests: { deserializeBinary(bytes: Uint8Array): Request },
  work: (request: Request, authorization: string | undefined) => Serializable | Promise<Serializable>,
): Handler {
  return (call) => {
    let request: Buffer | undefined;
    const run = async () => {
      if (!request) throw invalid('The call has no request.');
      return work(requests.deserializeBinary(request), call.authorization);
    };
    call.listen({
      onMessage: (message) => (request ??= message),
      onHalfClose: () => {
        run().then(
          (response) => {
            call.write(Buffer.from(response.serializeBinary()));
            call.end();
          },
          (error: unknown) => call.fail(callEnding(error)),
        );
      },
    });
  };
}
