import { createHash, timingSafeEqual } from 'node:crypto';
import { status, type Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { Controller, Inject } from '@nestjs/common';
import { GrpcStreamCall } from '@nestjs/microservices';
import type { FromAgent, FromApi } from './messages.js';
import { AgentSessions } from './sessions.js';

export const LINE_TOKEN = Symbol('agent line token');

type Call = ServerDuplexStream<FromAgent, FromApi> & { readonly metadata: Metadata };

/** Takes the agents' streams in; what they say is the sessions' matter. */
@Controller()
export class AgentLineController {
  readonly #expected: Buffer;

  constructor(
    @Inject(AgentSessions) private readonly sessions: AgentSessions,
    @Inject(LINE_TOKEN) token: string,
  ) {
    this.#expected = digest(token);
  }

  @GrpcStreamCall('AgentLine', 'Session')
  session(call: Call): void {
    // A cancelled stream emits its error; an unheard one would end the process.
    call.on('error', () => undefined);
    const [token] = call.metadata.get('berth-token');
    if (typeof token !== 'string' || !timingSafeEqual(digest(token), this.#expected)) {
      call.emit('error', {
        code: status.UNAUTHENTICATED,
        details:
          'This agent does not know the token of this home. Start it with the same BERTH_HOME as the api.',
      });
      return;
    }
    const { receive, closed } = this.sessions.open({
      send: (message) => {
        if (!call.destroyed && !call.writableEnded) call.write(message);
      },
      end: () => call.end(),
    });
    call.on('data', receive);
    call.on('end', () => {
      closed();
      call.end();
    });
    call.on('close', closed);
    call.on('cancelled', closed);
    call.on('error', closed);
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
