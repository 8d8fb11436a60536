import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { pathOf } from '../../gateway/endpoints.js';

export type Upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

const LIVE_PATH = '/live';
const UPGRADE_HEADERS: ReadonlySet<string> = new Set(['upgrade', 'http2-settings', 'connection']);

/**
 * Takes WebSockets at `/live`. Any other wish to change protocols is passed over, as HTTP allows: some clients offer
 * HTTP/2 with every request (`Upgrade: h2c`), and a server that listens for upgrades is given all of them.
 */
export function takeUpgrades(server: Server, live: Upgrade): void {
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const toWebSocket = req.headers.upgrade?.toLowerCase() === 'websocket';
    if (toWebSocket && pathOf(req.url ?? '/') === LIVE_PATH) live(req, socket, head);
    else passOver(server, req, socket, head);
  });
}

/** Gives the request back to the server as if it had asked for no upgrade. */
function passOver(server: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${req.method ?? 'GET'} ${req.url ?? '/'} HTTP/${req.httpVersion}`];
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(at, at + 2);
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
