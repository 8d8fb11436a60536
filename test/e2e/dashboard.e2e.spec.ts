import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { streams } from '#events/streams.js';
import { SAMPLES } from '#events/testing/samples.js';
import { openSession, VIEWS_SCHEMA } from '#schema/connect.js';
import { runningPostgres } from '../../apps/cli/src/up/postgres/running.js';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { browserPath, nameless, openBrowser, openPage, type Watched } from '../support/browser.js';
import { expectInvariants, openLogOf } from '../support/log.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const path = browserPath();
const MODEL = 'berth/smoke';
const PAGES = [
  'overview',
  'timeline',
  'decisions',
  'calls',
  'models',
  'playground',
  'keys',
  'settings',
  'what-if',
  'replay',
];

// Run by the page itself, as text: the tests are compiled without a browser's types.
const WATCH_GROWTH = `
  globalThis.seen = new Set();
  new MutationObserver(() => {
    globalThis.seen.add(document.querySelector('article:last-of-type .text')?.textContent.length ?? 0);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });`;
const TRY_AGAIN = `
  for (const button of document.querySelectorAll('button'))
    if (button.textContent === 'Try again') button.click();`;
const FOCUSED = `(({ outlineStyle, outlineWidth }, text) => ({ text, outlineStyle, outlineWidth }))(
  getComputedStyle(document.activeElement), document.activeElement.textContent)`;

if (path === undefined) {
  const say = 'No Chromium: the dashboard is not tested. Install chromium, or name one in CHROMIUM_PATH.';
  if (process.env['REQUIRE_BROWSER'] === '1') throw new Error(say);
  process.stderr.write(`\n*** ${say} ***\n\n`);
}

describe.skipIf(path === undefined)('the dashboard in a real browser', () => {
  let stack: Stack;
  let browser: Browser;
  let watched: Watched;
  let page: Page;

  const to = (place: string) => page.goto(`/#/${place}`);
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
  const first = async (list: string): Promise<unknown> =>
    ((await (await fetch(`${stack.url}/admin/${list}?limit=1`)).json()) as { items: unknown[] }).items[0];
  const resident = () => page.getByTestId('resident').filter({ hasText: MODEL });

  beforeAll(async () => {
    stack = await startStack();
    browser = await openBrowser(path ?? '');
    watched = await openPage(browser, stack.url);
    page = watched.page;
  });
  afterAll(async () => {
    await browser.close();
    await stack.stop();
    await expectInvariants(stack.home);
    removeFolder(stack.home);
  });

  it('shows at first sight what the machine has, that nothing is loaded, and what could be', async () => {
    const told = /^(\S+) shows what runs in a browser/m.exec(stack.output())?.[1];
    await page.goto(told ?? 'berth up does not say where the dashboard is');
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByText('No resident').waitFor();
    await page.getByRole('list', { name: /^What holds RAM, of .+ GiB$/ }).waitFor();
    await page.getByTestId('asleep').filter({ hasText: MODEL }).waitFor();
    await page.getByText('No call waits.').waitFor();
  });

  it('shows a resident, its call and its decision as they happen, with nothing pressed', async () => {
    expect((await stack.chat(MODEL)).status).toBe(200);
    await resident()
      .getByText(/ready$/)
      .waitFor();
    await resident()
      .getByText(/[KM]iB RAM, measured/)
      .waitFor();
    await page.getByTestId('call').filter({ hasText: 'completed' }).waitFor();
    await page.getByTestId('decision').filter({ hasText: 'ready' }).waitFor();
  });

  it('opens a decision as a person reads it: figures with their basis, candidates, predicted beside what happened', async () => {
    await resident().getByRole('link', { name: 'Why it is here' }).click();
    await heading(`Load ${MODEL}`);
    const need = page.getByRole('region', { name: 'Need by device' });
    expect(await need.getByRole('row').filter({ hasText: 'weights' }).innerText()).toMatch(
      /[KM]iB.*(projected|measured|header)/s,
    );
    const candidates = page.getByRole('region', { name: 'Candidates' });
    expect(await candidates.getByRole('row').filter({ hasText: 'chosen' }).innerText()).toContain('ram-only');
    const compared = page.getByRole('region', { name: 'Predicted and measured' });
    await compared
      .getByRole('row', { name: /^load/ })
      .getByText(/\d (s|ms)/)
      .first()
      .waitFor();
    await page.getByText('Nobody: there was room.').waitFor();
    await page.getByText('The same as text').click();
    await page.getByText('What was looked at').last().waitFor();
  });

  it('unloads and loads a model by button, and follows both to their end', async () => {
    await to('overview');
    await page.getByRole('button', { name: `Evict ${MODEL}` }).click();
    await page.getByText('No resident').waitFor();
    await page.getByRole('button', { name: `Load ${MODEL}` }).click();
    await resident()
      .getByText(/ready$/)
      .waitFor();
  });

  it('streams an answer in the playground, and says how long it took', async () => {
    await to(`playground?model=${encodeURIComponent(MODEL)}`);
    await page.getByRole('textbox', { name: 'Message' }).fill('Good morning');
    await page.evaluate(WATCH_GROWTH);
    await page.keyboard.press('Enter');
    await page.getByRole('article', { name: MODEL }).getByText(expectedText('smoke').text).waitFor();
    await page
      .getByTestId('figures')
      .getByText(/first word after .* output tokens/)
      .waitFor();
    const lengths = await page.evaluate<number>('globalThis.seen.size');
    expect(lengths).toBeGreaterThan(2);
  });

  it('shows a model with its artifacts, verdicts, sizes and settings, and changes one', async () => {
    await to('models');
    // No limit was set: the drive alone says what a pull may bring.
    await page.getByRole('region', { name: 'Disk' }).getByRole('cell', { name: 'none' }).waitFor();
    await to(`models/${encodeURIComponent(MODEL)}`);
    await page.getByRole('region', { name: 'Artifacts' }).getByText('complete').waitFor();
    await page.getByRole('region', { name: 'Verdicts' }).getByText('fits now').first().waitFor();
    await page
      .getByRole('region', { name: 'Accuracy of sizes' })
      .getByText(/RAM · .* tokens × 1 slot/)
      .first()
      .waitFor();
    await page.getByRole('img', { name: /Tokens per second/ }).waitFor();
    await page.getByRole('button', { name: 'Change goal' }).click();
    await page.getByRole('textbox', { name: 'goal' }).fill('fast');
    await page.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('region', { name: 'Settings' }).getByRole('row', { name: /^goal/ });
    await row.getByText('this model here').waitFor();
    expect(await row.innerText()).toContain('over quality');
  });

  it('goes back in time to what stood then, folded from the log', async () => {
    await to('timeline');
    await page.getByTestId('lane').filter({ hasText: MODEL }).first().waitFor();
    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    await page.getByRole('heading', { name: /^As it stood at/ }).waitFor();
    await page.getByText('Nothing was loaded then.').or(page.getByText('No worker yet')).first().waitFor();
    await page.keyboard.press('End');
    await page.getByText(/^folded from the log up to position \d+$/).waitFor();
    await resident().waitFor();
    await page.getByRole('button', { name: 'Now' }).click();
    await page.getByRole('heading', { name: 'As it stands now' }).waitFor();
  });

  it('asks what other hardware would have done, and shows it beside what happened', async () => {
    await to('what-if');
    await page.getByRole('textbox', { name: 'RAM that Berth may use' }).fill('much');
    await page.getByRole('button', { name: 'Find out' }).click();
    await page.getByText('"much" is no size').waitFor();
    await page.getByRole('textbox', { name: 'RAM that Berth may use' }).fill('64GiB');
    await page.getByRole('button', { name: 'Find out' }).click();
    const table = page.getByRole('region', { name: 'Beside each other' });
    await table.getByRole('row', { name: /^loads \d/ }).waitFor();
    expect(await table.getByRole('columnheader').allInnerTexts()).toContain('really');
    await page.getByText(/decisions? come out the same/).waitFor();
  });

  it('proves that the views are what the log gives, shows a row that was changed by hand, and folds them anew', async () => {
    await to('replay');
    await page.getByText('No replay was asked').waitFor();
    const damage = await openSession(runningPostgres(stack.home) ?? '', { applicationName: 'test' });
    await damage.db.withSchema(VIEWS_SCHEMA).updateTable('calls').set({ status: 418 }).execute();
    await damage.close();
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByRole('heading', { name: /^\d+ rows? of \d+ differ/ }).waitFor();
    const row = page.getByTestId('difference').first();
    expect(await row.innerText()).toMatch(/calls.*call_id.*changed.*status: 418.*200/s);
    await page.getByRole('button', { name: 'Fold anew' }).click();
    await page.getByRole('button', { name: 'Yes, fold anew' }).click();
    await page.getByRole('heading', { name: /^The views were folded anew from \d+ events/ }).waitFor();
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByRole('heading', { name: /^Every row is what the log gives/ }).waitFor();
  });

  it('shows a line for each night that was summarised, the last one first', async () => {
    const log = openLogOf(stack.home);
    for (const day of ['2026-03-01', '2026-03-02']) {
      const id = randomUUID();
      const event = { type: 'WhatIfSummarised', data: { ...SAMPLES.WhatIfSummarised, day } } as const;
      await log.append(streams.whatIf, [{ id, event, cause: { correlationId: id, causationId: id } }], 'any');
    }
    await log.close();
    const { really, least, changes } = SAMPLES.WhatIfSummarised;
    const nights = await waitFor('both nights are in the view', 20_000, async () => {
      await page.reload();
      await to('what-if');
      await page.getByTestId('night').or(page.getByText('No night was summarised yet')).first().waitFor();
      const rows = await page.getByTestId('night').allInnerTexts();
      return rows.length === 2 ? rows : undefined;
    });
    expect(nights.map((row) => row.slice(0, 10))).toEqual(['2026-03-02', '2026-03-01']);
    expect(nights[0]).toContain(`${least.ratio?.toFixed(1)} ×`);
    expect(nights[0]).toContain(`by ${changes[0]?.name}`);
    expect(nights[0]?.split(/\s+/)).toContain(String(really.loads));
  });

  it('makes a key that is shown once, and revokes it when that is confirmed', async () => {
    await to('keys');
    await page.getByRole('textbox', { name: 'Name' }).fill('laptop');
    await page.getByRole('button', { name: 'Make a key' }).click();
    expect(await page.getByText(/^bk_/).innerText()).toMatch(/^bk_\w+_[\w-]{20,}$/);
    await page.getByRole('button', { name: 'I have it' }).click();
    const row = page.getByTestId('key').filter({ hasText: 'laptop' });
    await row.getByText('valid').waitFor();
    expect(await page.content()).not.toContain('bk_');
    await row.getByRole('button', { name: 'Revoke laptop' }).click();
    await row.getByRole('button', { name: 'Yes, revoke' }).click();
    await row.getByText('revoked').waitFor();
  });

  it('can be walked by keyboard: to the content, along the pages, with a focus that is seen', async () => {
    await page.goto('/');
    await page.getByRole('status').getByText('Live').waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Skip to the content');
    for (let n = 0; n < 4; n++) await page.keyboard.press('Tab');
    const focused = await page.evaluate(FOCUSED);
    expect(focused).toEqual({ text: 'Decisions', outlineStyle: 'solid', outlineWidth: '2px' });
    await page.keyboard.press('Enter');
    await heading('Decisions');
    await waitFor('the heading has the focus', 5000, () =>
      page.evaluate<boolean>("document.activeElement.tagName === 'H1'"),
    );
  });

  it('gives everything a name and each page one heading and its landmarks', async () => {
    for (const name of PAGES) {
      await to(name);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect([name, await page.locator('h1').count()]).toEqual([name, 1]);
      for (const role of ['banner', 'main'] as const)
        expect([name, await page.getByRole(role).count()]).toEqual([name, 1]);
      expect([name, await nameless(page)]).toEqual([name, []]);
    }
  });

  it('fits 375 px on every page', async () => {
    await page.setViewportSize({ width: 375, height: 800 });
    for (const name of [...PAGES, `models/${encodeURIComponent(MODEL)}`]) {
      await to(name);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect([name, await page.evaluate<number>('document.documentElement.scrollWidth')]).toEqual([
        name,
        375,
      ]);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it('is dark or light as the system is, or as it is told, also after a reload', async () => {
    const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
    const dark = await waitFor('the page is dark', 5000, async () =>
      (await ground()) === light ? undefined : ground(),
    );
    await page.getByRole('combobox', { name: 'Colours' }).selectOption('Light');
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await ground()).toBe(light);
    await page.getByRole('combobox', { name: 'Colours' }).selectOption('Auto');
    expect(await ground()).toBe(dark);
  });

  it('has complained of nothing and asked no other server for anything so far', () => {
    expect(watched.complaints).toEqual([]);
  });

  it('shows on each page that something is read, what is wrong when it cannot be, and the page after another try', async () => {
    const { decisionId } = (await first('decisions')) as { decisionId: string };
    const { callId } = (await first('calls')) as { callId: string };
    const model = `models/${encodeURIComponent(MODEL)}`;
    const others = PAGES.filter((name) => !['overview', 'playground'].includes(name));
    const own = await openPage(browser, stack.url);
    const { page: looked } = own;
    let answer: 'fail' | 'pass' = 'pass';
    let release: () => void = () => undefined;
    let held: Promise<void> | undefined;
    await looked.route('**/admin/**', async (route) => {
      await held;
      const detail = 'The views cannot be read; they are folded again soon.';
      await (answer === 'pass'
        ? route.continue()
        : route.fulfill({ status: 503, json: { status: 503, code: 'views_unavailable', detail } }));
    });
    for (const name of [...others, model, `decisions/${decisionId}`, `calls/${callId}`]) {
      held = new Promise((resolve) => (release = resolve));
      answer = 'fail';
      await looked.goto(`/#/${name}`);
      const waits = looked.getByRole('status').filter({ hasText: /^Loading / });
      await waits.first().waitFor();
      held = undefined;
      release();
      await looked.getByRole('alert').getByText('The views cannot be read').first().waitFor();
      // What could not be read is not shown as empty.
      expect([name, await looked.locator('.empty:not(:has-text("resident"))').count()]).toEqual([name, 0]);
      answer = 'pass';
      await waitFor(`${name} is there`, 10_000, async () => {
        await looked.evaluate(TRY_AGAIN);
        return (await looked.getByRole('alert').count()) === 0;
      });
      await waits.first().waitFor({ state: 'detached' });
    }
    await own.context.close();
  });

  it('shows that it is read on the pages that are told live, until they are told', async () => {
    const own = await openPage(browser, stack.url);
    await own.page.routeWebSocket(/\/live/, () => undefined);
    for (const [name, parts] of [
      ['overview', 5],
      ['playground', 1],
    ] as const) {
      await own.page.goto(`/#/${name}`);
      await own.page.getByRole('status').getByText('Connecting').waitFor();
      const waits = own.page.getByRole('status').filter({ hasText: /^Loading / });
      await waits.first().waitFor();
      expect([name, await waits.count()]).toEqual([name, parts]);
    }
    await own.context.close();
  });

  it('says that it is disconnected while the api is away, and goes on by itself when it is back', async () => {
    await to('overview');
    await resident().waitFor();
    process.kill(stack.pidOf('api'), 'SIGKILL');
    await page.getByRole('alert').getByText('Berth does not answer').waitFor();
    await page.getByText('Disconnected').waitFor();
    await resident().waitFor();
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    // Not a picture of before: what happens now is told again.
    expect((await stack.chat(MODEL, 'again')).status).toBe(200);
    await page
      .getByTestId('call')
      .filter({ hasText: /just now|\d s ago/ })
      .first()
      .waitFor();
  });

  it('asks for a key from outside, says what is wrong with one, and lets a right one in', async () => {
    const made = await fetch(`${stack.url}/admin/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'from outside', scope: 'admin' }),
    });
    const { key } = (await made.json()) as { key: string };
    // A forwarding header from a peer that is no listed proxy: outside.
    const outside = await openPage(browser, stack.url, {
      extraHTTPHeaders: { 'x-forwarded-for': '203.0.113.7' },
    });
    await outside.page.goto('/#/calls');
    const field = outside.page.getByLabel('Admin key');
    await field.fill('bk_none_wrong');
    await outside.page.getByRole('button', { name: 'Sign in' }).click();
    await outside.page.getByRole('alert').waitFor();
    await field.fill(key);
    await outside.page.getByRole('button', { name: 'Sign in' }).click();
    await outside.page.getByTestId('call').first().waitFor();
    const kept = await outside.page.evaluate<string>('JSON.stringify(localStorage) + document.cookie');
    expect(kept).not.toContain(key);
    await outside.context.close();
  });
});
