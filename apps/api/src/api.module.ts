import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { Admission } from './admission/admission.js';
import { AgentLineController, LINE_TOKEN } from './agents/line.controller.js';
import { AgentSessions } from './agents/sessions.js';
import { QueueController } from './live/queue.controller.js';

export interface ApiParts {
  readonly admission: Admission;
  readonly sessions: AgentSessions;
  readonly lineToken: string;
  /** Modules of what is read from the views. */
  readonly imports: readonly DynamicModule[];
}

/** What Nest serves: the agents' line and management. The parts are made before it, by hand, and outlive it. */
@Module({})
export class ApiModule {
  static with(parts: ApiParts): DynamicModule {
    const providers: Provider[] = [
      { provide: Admission, useValue: parts.admission },
      { provide: AgentSessions, useValue: parts.sessions },
      { provide: LINE_TOKEN, useValue: parts.lineToken },
    ];
    return {
      module: ApiModule,
      imports: [...parts.imports],
      controllers: [AgentLineController, QueueController],
      providers,
    };
  }
}
