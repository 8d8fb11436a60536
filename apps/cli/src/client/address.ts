import type { ResolvedSettings } from '../settings/resolve.js';
import { homeHolder } from '../up/home-lock.js';

/**
 * Where a running Berth is asked: --url; else a port that was named (flag, environment, berth.yaml); else the Berth that
 * runs on this home, whatever its port; else the default port.
 */
export function addressOf(settings: ResolvedSettings, url: string | undefined): string {
  if (url !== undefined) return /^https?:\/\//.test(url) ? url : `http://${url}`;
  const port = settings.values.port ?? '8080';
  if (settings.from.port === 'default' || port === '0') {
    const running = homeHolder(settings.values.home)?.address;
    if (running !== undefined) return running;
  }
  const host = settings.values.host ?? '127.0.0.1';
  const asked = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
  return `http://${asked.includes(':') ? `[${asked}]` : asked}:${port}`;
}
