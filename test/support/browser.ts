import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const ELSEWHERE = ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome', '/snap/bin/chromium'];

/** Where a Chromium is: `CHROMIUM_PATH`, or the usual names on the path; undefined when there is none. */
export function browserPath(): string | undefined {
  const named = process.env['CHROMIUM_PATH'];
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const places = [
    ...(named ? [named] : []),
    ...folders.flatMap((f) => NAMES.map((name) => join(f, name))),
    ...ELSEWHERE,
  ];
  return places.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Nothing of Chromium's own asks for anything outside while a test watches the network. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const openBrowser = (executablePath: string): Promise<Browser> =>
  chromium.launch({ executablePath, args: QUIET });

export interface Watched {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the page complained of, and where it asked for something that is not its server's. */
  readonly complaints: string[];
}

/** A page whose errors and foreign requests are written down. */
export async function openPage(
  browser: Browser,
  baseURL: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ baseURL, viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(baseURL).origin) complaints.push(`asked ${request.url()}`);
  });
  page.on('websocket', (socket) => {
    if (new URL(socket.url()).host !== new URL(baseURL).host) complaints.push(`asked ${socket.url()}`);
  });
  return { context, page, complaints };
}

const NAMED_ROLES = new Set([
  'button',
  'link',
  'textbox',
  'combobox',
  'slider',
  'spinbutton',
  'progressbar',
  'region',
]);

/** What can be used or walked to on a page and has no name for who does not see it. */
export async function nameless(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  return nodes.flatMap(({ ignored, role, name }) => {
    const kind = String(role?.value ?? '');
    return !ignored && NAMED_ROLES.has(kind) && String(name?.value ?? '').trim() === '' ? [kind] : [];
  });
}
