import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DashboardPages } from './dashboard-pages.js';

describe('the files of the dashboard', () => {
  let folder: string;
  let server: Server;
  let url: string;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-page-'));
    const pages = new DashboardPages(folder);
    server = createServer((req, res) => {
      if (!pages.handle(req, res)) res.writeHead(418).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });

  const build = () => {
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'index.html'), '<!doctype html>');
    writeFileSync(join(folder, 'assets', 'app-1a2b.js'), 'plain');
    writeFileSync(join(folder, 'assets', 'app-1a2b.js.gz'), 'not really gzip');
    writeFileSync(join(folder, 'secret.pem'), 'never served');
  };
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { 'accept-encoding': 'identity', ...headers } });

  it('are looked up again each time for the page itself, and kept for ever under a name with a hash', async () => {
    build();
    const index = await get('/');
    expect(index.status).toBe(200);
    expect(index.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(index.headers.get('cache-control')).toBe('no-cache');
    const again = await get('/', { 'if-none-match': index.headers.get('etag')! });
    expect(again.status).toBe(304);
    const script = await get('/assets/app-1a2b.js');
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(await script.text()).toBe('plain');
  });

  it('run scripts and open connections of this server alone, and are framed by nobody', async () => {
    build();
    const policy = (await get('/')).headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
  });

  it('go out as the build compressed them, to those who take that', async () => {
    build();
    const head = (accept: string) =>
      fetch(`${url}/assets/app-1a2b.js`, { method: 'HEAD', headers: { 'accept-encoding': accept } });
    expect((await head('gzip, br')).headers.get('content-encoding')).toBe('gzip');
    expect((await head('gzip;q=0, br')).headers.get('content-encoding')).toBeNull();
    expect((await head('identity')).headers.get('content-encoding')).toBeNull();
  });

  it('are the files of the build and nothing else of the folder or above it', async () => {
    build();
    for (const path of ['/assets/../secret.pem', '/assets/none.js', '/assets/%2e%2e/secret.pem'])
      expect([path, [404, 418].includes((await get(path)).status)]).toEqual([path, true]);
    expect((await get('/admin/workers')).status).toBe(418);
    expect((await get('/v1/models')).status).toBe(418);
    const posted = await fetch(url, { method: 'POST', body: 'x' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('say how to build them where they were not', async () => {
    const answer = await get('/');
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain('npm run build');
  });
});
