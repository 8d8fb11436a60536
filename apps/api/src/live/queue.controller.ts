import { Controller, Get, Inject } from '@nestjs/common';
import { Admission } from '../admission/admission.js';
import { AgentSessions } from '../agents/sessions.js';

/** The queue as it stands now: its order, what was predicted, and why each call waits. */
@Controller('admin/queue')
export class QueueController {
  constructor(
    @Inject(Admission) private readonly admission: Admission,
    @Inject(AgentSessions) private readonly sessions: AgentSessions,
  ) {}

  @Get()
  queue(): unknown {
    const now = Date.now();
    return {
      items: this.admission.queue.map((call) => {
        const { wanted, ticket, firstPlace, freeInSeconds, loading } = call;
        const progress = loading && this.sessions.progressOf(loading.residentId);
        return {
          callId: ticket.callId,
          place: call.place,
          modelKey: ticket.modelKey,
          phase: call.phase,
          why: call.why,
          background: ticket.background,
          promptTokens: ticket.promptTokens,
          ...(ticket.maxTokens === undefined ? {} : { maxTokens: ticket.maxTokens }),
          waitedSeconds: (now - wanted.receivedAtMs) / 1000,
          maxWaitSeconds: wanted.settings.maxWaitSeconds,
          ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
          ...(loading ? { loading: { ...loading, ...progress } } : {}),
          ...(firstPlace ? { predicted: firstPlace } : {}),
        };
      }),
    };
  }
}
