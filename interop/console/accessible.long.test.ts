import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { connect } from '@meerkat/client';
import type { AdminPorts, PastTrees } from '@meerkat/console';
import { Mutex } from '@meerkat/recipes';
import { TestEnsemble } from '@meerkat/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { violationsOf } from './accessibility.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';
import { isRecording, picturePath, recordPicture } from './pictures.ts';
import { PATIENCE_MS } from './pooled-page.ts';

/*
 * Accessibility and appearance of the page. With RECORD=1 the pictures of docs/console.md are recorded again.
 */

/** Views whose pictures are recorded here. */
const PICTURED: readonly string[] = ['tree', 'live', 'lines', 'servers', 'sizes'];
/** Recorded by the keyboard tests, which have more to show. */
const OTHERS = ['members', 'time'];

/** Fills a service with something to show. */
async function furnish(servers: string): Promise<AsyncDisposable> {
  const clients = await Promise.all([1, 2, 3].map(() => connect(servers)));
  const [ann, bob, cid] = clients as [(typeof clients)[0], (typeof clients)[0], (typeof clients)[0]];
  const config = { host: 'db-1.internal', port: 5432, pool: { min: 2, max: 20 }, features: ['replicas', 'tls'] };
  await ann.createParents('/app/config/database', JSON.stringify(config));
  await ann.create('/app/config/motd', 'Deploys are frozen until Monday.\n');
  for (const name of ['api', 'billing', 'search', 'web']) {
    for (let i = 0; i < 3; i++) await ann.createParents(`/services/${name}/instance-${i}`, '{}', { mode: 'ephemeral' });
  }
  for (let i = 0; i < 60; i++) await ann.createParents(`/orders/${i % 6}/order-${i}`, 'x'.repeat((i * 89) % 1500));
  const stop = new AbortController();
  await new Mutex(ann, '/locks/orders').acquire();
  await new Mutex(bob, '/locks/billing').acquire();
  for (const [client, path] of [
    [bob, '/locks/orders'],
    [ann, '/locks/billing'],
    [cid, '/locks/orders'],
  ] as const) {
    new Mutex(client, path).acquire({ signal: stop.signal }).catch(() => {});
  }
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

const VIEWS: readonly { readonly name: string; readonly path: string; ready(page: Page): Promise<void> }[] = [
  { name: 'tree', path: '/app/config/database', ready: (page) => page.getByText('"replicas"').waitFor() },
  {
    name: 'live',
    path: '/app',
    ready: (page) => page.getByRole('button', { name: '/app/config/motd' }).first().waitFor(),
  },
  { name: 'sessions', path: '/', ready: (page) => page.getByText('this console').waitFor() },
  { name: 'lines', path: '/', ready: (page) => page.getByText('These sessions wait for each other').waitFor() },
  { name: 'servers', path: '/', ready: (page) => page.getByRole('img', { name: /^Latency/ }).waitFor() },
  { name: 'sizes', path: '/', ready: (page) => page.getByRole('row', { name: /^orders / }).waitFor() },
  { name: 'time', path: '/app/config/motd', ready: (page) => page.getByText('version').waitFor() },
];

/** A past without changes: only the page is under test. */
function unchangingPast(servers: string): PastTrees {
  return {
    span: () => Promise.resolve({ fromMs: Date.parse('2026-01-01'), toMs: Date.parse('2026-01-02') }),
    async open() {
      const client = await connect(servers);
      return { zxid: '0x100000001', atMs: Date.parse('2026-01-02'), client, close: () => client.close() };
    },
  };
}

/** Admin ports that allow ending the first requested session, and no other. */
function madeUpAdmin(): AdminPorts {
  let first = '';
  return {
    isSecure: false,
    async ask(_server, { command }) {
      first ||= command;
      if (command !== first) return { status: 403, body: { command: 'end_session', error: 'Not authorized' } };
      const ephemerals = { ephemerals: 3, ephemeral_paths: ['/a', '/b', '/c'] };
      return { status: 200, body: { ...ephemerals, is_ended: false, command: 'end_session', error: null } };
    },
  };
}

describeWith(['chromium'], 'the console is open to everyone', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(['light', 'dark'] as const)('all views in %s pass the WCAG 2.2 AA checks of axe', async (colorScheme) => {
    // All servers share this test's event loop, so a stall must not look like a failure.
    await using ensemble = await TestEnsemble.start({ syncLimit: 50 });
    await using _ = await furnish(ensemble.connectString);
    const isDark = colorScheme === 'dark';
    const past = unchangingPast(ensemble.connectString);
    const options = {
      name: 'service',
      colorScheme,
      width: 1000,
      height: 560,
      cluster: { past, admin: madeUpAdmin() },
    };
    await using site = await ConsoleSite.open(browser, ensemble.connectString, options);
    const { page, client } = site;
    await page.goto(site.console.url);
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await site.enter();
    for (const { name, path, ready } of VIEWS) {
      await site.show(path, name);
      if (name === 'live') {
        await page.getByText('Nothing has happened yet.').waitFor();
        for (const motd of ['Deploys are frozen until Friday.\n', 'Deploys are open.\n']) {
          await client.set('/app/config/motd', motd);
          await page.getByRole('button', { name: '/app/config/motd' }).first().waitFor();
        }
      }
      await ready(page);
      expect.soft(await violationsOf(page, isDark), name).toEqual([]);
      if (
        isRecording &&
        PICTURED.includes(name) &&
        colorScheme === (name === 'live' || name === 'servers' ? 'dark' : 'light')
      ) {
        if (name === 'servers') await page.getByRole('img', { name: /^Requests a second\. 127\S+: \d/ }).waitFor();
        await recordPicture(page, name);
      }
    }
    // Still in the time view.
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    await page.getByRole('region', { name: 'Differences' }).waitFor();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await site.show('/', 'servers');
    await page.getByRole('button', { name: 'Remove server 3' }).click();
    await page.getByRole('region', { name: 'Plan' }).waitFor();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await page.getByRole('button', { name: 'Apply…' }).click();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await page.keyboard.press('Escape');
    await site.show('/', 'sessions');
    for (const i of [0, 1]) {
      await page
        .getByRole('row')
        .filter({ hasText: '0x' })
        .filter({ hasNotText: 'this console' })
        .nth(i)
        .getByRole('button')
        .click();
      // The second one is refused, with the reason.
      if (i === 1) await page.getByRole('status').getByText('No permission to end sessions').waitFor();
      else await page.getByRole('button', { name: 'End session…' }).waitFor();
      expect.soft(await violationsOf(page, isDark)).toEqual([]);
      if (i === 0) {
        await page.getByRole('button', { name: 'End session…' }).click();
        await page.getByText('3 ephemeral znodes go with it').waitFor();
        expect.soft(await violationsOf(page, isDark)).toEqual([]);
      }
      await page.keyboard.press('Escape');
    }
    await site.show('/app/config/motd');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'New value of' }).fill('something else');
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await page.getByRole('button', { name: 'Review' }).click();
    await page.locator('.cm-deletedChunk').waitFor();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'More' }).click();
    expect.soft(await violationsOf(page, isDark)).toEqual([]);
    site.expectNoComplaints();
  });

  test.each([320, 768, 3840])(
    'on a screen of %s pixels nothing is cut off, and axe finds nothing on the narrowest, light and dark',
    async (width) => {
      await using ensemble = await TestEnsemble.start({ servers: 1 });
      await using _ = await furnish(ensemble.connectString);
      await using site = await ConsoleSite.open(browser, ensemble.connectString, {
        width,
        height: width > 2000 ? 2160 : 640,
        cluster: { past: unchangingPast(ensemble.connectString) },
      });
      const { page } = site;
      await site.enter();
      for (const { name, path, ready } of VIEWS) {
        await site.show(path, name);
        await page.locator(`.page-${name}`).waitFor();
        // On the narrow page the tree comes before the value.
        if (name !== 'live' && name !== 'tree') await ready(page);
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect({ name, overflow }).toEqual({ name, overflow: 0 });
        if (width > 320) continue;
        expect.soft(await violationsOf(page), name).toEqual([]);
        await page.emulateMedia({ colorScheme: 'dark' });
        expect.soft(await violationsOf(page, true), `${name} in dark`).toEqual([]);
        await page.emulateMedia({ colorScheme: 'light' });
      }
      site.expectNoComplaints();
    },
  );

  test('the pictures of the page exist and are small', () => {
    const sizes = [...PICTURED, ...OTHERS].map((name) => statSync(picturePath(name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(400 * 1024);
  });

  test('the page loads fast, and its scripts are less than 400 KB compressed', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 1 });
    await using site = await ConsoleSite.open(browser, ensemble.connectString);
    const { page } = site;
    await site.enter('/');
    await page.reload();
    await page.reload();
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor({ timeout: PATIENCE_MS });
    const assets = fileURLToPath(new URL('../../packages/console/dist/web/assets/', import.meta.url));
    const scripts = readdirSync(assets).filter((name) => name.endsWith('.js'));
    const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0);
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(400_000);
  });
});
