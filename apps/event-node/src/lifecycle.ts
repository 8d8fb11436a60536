/** The protocol with the supervisor that started this process: it says once that it is ready, or why not. */
type Message =
  | { readonly berth: 'ready'; readonly details: Readonly<Record<string, string | number | boolean>> }
  | { readonly berth: 'failed'; readonly message: string };

export function tellSupervisor(message: Message): void {
  if (process.connected) process.send?.(message);
}

/**
 * Calls `stop` once: on SIGTERM, when the supervisor is gone, and on SIGINT unless a supervisor decides the order (Ctrl-C
 * reaches the whole foreground group).
 */
export function onStopRequest(stop: () => void): void {
  let asked = false;
  const once = () => {
    if (asked) return;
    asked = true;
    stop();
  };
  process.on('SIGTERM', once);
  process.on('SIGINT', () => {
    if (!process.connected) once();
  });
  if (process.connected) process.on('disconnect', once);
}
