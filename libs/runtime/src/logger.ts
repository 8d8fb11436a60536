import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** JSON log lines on stdout, one process name each. No prompt, answer, key or secret may be given to it. */
export function createLogger(name: string): Logger {
  return pino({
    name,
    level: process.env['BERTH_LOG'] ?? 'info',
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: ['headers.authorization', '*.authorization', '*.apiKey', '*.secret'],
      censor: '[left out]',
    },
  });
}
