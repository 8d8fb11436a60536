import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Writes whole lines of one's own where a logger writes its lines, in order with them. */
export function lineWriter(logger: Logger): (lines: string) => void {
  const { [pino.symbols.streamSym]: stream } = logger as unknown as Readonly<
    Record<symbol, { write(lines: string): void } | undefined>
  >;
  return (lines) => stream?.write(lines);
}

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
