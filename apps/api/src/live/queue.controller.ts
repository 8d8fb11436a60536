import { Controller, Get, Inject } from '@nestjs/common';
import type { QueueItem, WirePage } from '#domain/wire/index.js';
import { Admission } from '../admission/admission.js';
import { AgentSessions } from '../agents/sessions.js';
import { queueItems } from './queue-items.js';

/** The queue as it stands now: its order, what was predicted, and why each call waits. */
@Controller('admin/queue')
export class QueueController {
  constructor(
    @Inject(Admission) private readonly admission: Admission,
    @Inject(AgentSessions) private readonly sessions: AgentSessions,
  ) {}

  @Get()
  queue(): WirePage<QueueItem> {
    return { items: queueItems(this.admission, this.sessions, Date.now()) };
  }
}
