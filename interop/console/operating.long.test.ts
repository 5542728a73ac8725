import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { Barrier, DoubleBarrier, Mutex } from '@meerkat/recipes';
import { TestEnsemble, TestServer } from '@meerkat/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChangingEnsemble } from '../ensemble/changing-ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';

describeWith(['chromium', 'apache'], 'the console shows the live state', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(SERVER_KINDS)(
    'of %s: each change below a path, with its effect on the value; it can be paused and filtered',
    async (kind) => {
      await using server = await ServerProcess.start(kind);
      await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
      const { client, page } = site;
      await client.createParents('/app/a', 'port=80');
      await site.enter('/app', 'live');
      await page.getByText('Watching /app. Nothing has happened yet.').waitFor();
      await client.set('/app/a', 'port=81');
      await page.getByText('port=81').waitFor();
      await client.set('/app/a', 'port=82');
      await page.locator('del', { hasText: '1' }).waitFor();
      await page.locator('ins', { hasText: '2' }).waitFor();
      await page.getByRole('button', { name: 'Pause' }).click();
      await client.create('/app/later', 'x');
      await page.getByText('Paused: 1 changes wait').waitFor();
      expect(await page.getByRole('button', { name: '/app/later' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: '/app/later' }).waitFor();
      await page.getByRole('searchbox').fill('later');
      await expect.poll(() => page.locator('.log-row').count()).toBe(1);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export' }).click(),
      ]);
      expect(download.suggestedFilename()).toBe('changes.ndjson');
      site.expectNoComplaints();
    },
  );

  test('a thousand changes a second, none of them lost or late', async () => {
    await using server = await ServerProcess.start('meerkat');
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    for (let i = 0; i < 50; i++) await client.createParents(`/busy/${i}`, '0');
    await site.enter('/busy', 'live');
    await page.getByText('Nothing has happened yet.').waitFor();
    for (let tick = 0; tick < 30; tick++) {
      const at = performance.now();
      await Promise.all(Array.from({ length: 100 }, (_, i) => client.set(`/busy/${i % 50}`, `${tick}.${i}`)));
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 100 - (performance.now() - at))));
    }
    await client.set('/busy/0', 'the last one');
    await page.getByText('3,001 changes').waitFor();
    await page.getByText('the last one').waitFor();
    expect(await page.getByText('left out here').count()).toBe(0);
    expect(await page.locator('.log-row').count()).toBeLessThan(80);
    site.expectNoComplaints();
  });

  test.each(SERVER_KINDS)('sessions of %s, with their ephemerals and watches', async (kind) => {
    await using server = await ServerProcess.start(kind);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    await client.create('/held', 'x', { mode: 'ephemeral' });
    await client.get('/held', { watch: true });
    await site.enter('/', 'sessions');
    const session = `0x${client.session?.id.toString(16)}`;
    await page.getByText('this console').waitFor();
    await page.getByRole('searchbox').fill('/held');
    const row = page.getByRole('row').filter({ has: page.getByRole('button', { name: session }) });
    await expect
      .poll(async () => (await row.getByRole('cell').allTextContents()).slice(1))
      .toEqual([
        expect.stringMatching(/^\S+:\d+$/),
        `127.0.0.1:${server.port}`,
        expect.any(String),
        expect.stringMatching(/^\d+ s$/),
        expect.stringMatching(/^0x[0-9a-f]+$/),
        expect.stringMatching(/^[\d.]+ \/ \d+ ms$/),
        '1',
        '1',
      ]);
    await page.getByRole('button', { name: session }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Ephemeral znodes (1)').waitFor();
    await dialog.getByText('Watched paths (1)').waitFor();
    await dialog.getByRole('button', { name: '/held' }).first().click();
    await page.getByRole('region', { name: '/held', exact: true }).waitFor();
    site.expectNoComplaints();
  });

  test('holders and waiters of a lock, deadlocks, and waiters at a barrier', async () => {
    await using server = await ServerProcess.start('apache');
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { page } = site;
    const lineOf = (name: string) => page.locator('.line').filter({ has: page.getByRole('link', { name }) });
    const ann = await connect(`127.0.0.1:${server.port}`);
    const bob = await connect(`127.0.0.1:${server.port}`);
    const first = await new Mutex(ann, '/locks/first').acquire();
    const second = await new Mutex(bob, '/locks/second', { layout: 'kazoo' }).acquire();
    const waiting = new AbortController();
    const annWaits = new Mutex(ann, '/locks/second', { layout: 'kazoo' }).acquire({ signal: waiting.signal });
    annWaits.catch(() => {});
    await site.enter('/', 'lines');
    await page.getByRole('link', { name: '/locks/first' }).waitFor();
    const [holder = ''] = (await ann.children('/locks/first')).children;
    const token = (await ann.exists(`/locks/first/${holder}`))?.czxid.toString(16);
    await lineOf('/locks/first').getByText('holds it').waitFor();
    await lineOf('/locks/first')
      .getByText(new RegExp(`^since .+ · token 0x${token}$`))
      .waitFor();
    const line = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: '/locks/second' }) });
    await line.getByText('kazoo').waitFor();
    await line.getByText('waits for').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    const bobWaits = new Mutex(bob, '/locks/first').acquire({ signal: waiting.signal });
    bobWaits.catch(() => {});
    await page.getByRole('alert').filter({ hasText: 'Deadlock' }).waitFor();
    waiting.abort();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await Promise.allSettled([annWaits, bobWaits]);
    const latch = '/election/_c_00000000-0000-0000-0000-000000000000-latch-';
    await ann.createParents(latch, 'ann', { mode: 'ephemeral', sequential: true });
    await lineOf('/election').getByText('leads').waitFor();
    await ann.createParents('/tasks/queue-', 'x', { sequential: true });
    await lineOf('/tasks').getByText('1 item').waitFor();

    const barrier = new Barrier(ann, '/barriers/migration');
    await barrier.set();
    await lineOf('/barriers/migration').getByText('No session watches it').waitFor();
    const waits = new Barrier(bob, '/barriers/migration').wait();
    await lineOf('/barriers/migration').getByText('waits until it is removed').waitFor();
    await barrier.remove();
    await waits;
    await lineOf('/barriers/migration').waitFor({ state: 'detached' });
    const entering = new DoubleBarrier(ann, '/barriers/start', 2).enter();
    await lineOf('/barriers/start').getByText('waits for the others').waitFor();
    await Promise.all([entering, new DoubleBarrier(bob, '/barriers/start', 2).enter()]);
    await expect.poll(() => lineOf('/barriers/start').getByText('is inside').count()).toBe(2);
    await first.release();
    await second.release();
    await Promise.all([ann.close(), bob.close()]);
    site.expectNoComplaints();
  });

  test('the servers of an ensemble, and an election among them', async () => {
    await using ensemble = await TestEnsemble.start();
    await using site = await ConsoleSite.open(browser, ensemble.connectString);
    const { page } = site;
    await site.enter('/', 'servers');
    await page.getByRole('cell', { name: 'leader', exact: true }).waitFor();
    await expect.poll(() => page.getByRole('cell', { name: 'follower', exact: true }).count()).toBe(2);
    const follower = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'follower', exact: true }) });
    await expect
      .poll(async () => (await follower.first().getByRole('cell').allTextContents()).slice(1, 6))
      .toEqual([
        'follower',
        expect.stringMatching(/^0x[1-9][0-9a-f]{8}$/),
        '0',
        expect.stringMatching(/^[\d.]+ \/ \d+$/),
        expect.stringMatching(/^[\d.]+ \/ [\d.]+$/),
      ]);
    await page.getByRole('img', { name: /^Requests a second\. 127/ }).waitFor();
    await page.getByRole('button', { name: 'Remove server 1' }).waitFor();
    await ensemble.leader.kill();
    await page.getByText('nothing listens there').waitFor();
    await ensemble.whenServing();
    await expect.poll(() => page.getByRole('cell', { name: 'follower', exact: true }).count()).toBe(1);
    await page.locator('.role-span.leader').nth(1).waitFor();
    site.expectNoComplaints();
  });

  test.each(SERVER_KINDS)('a rolling restart of %s: which servers are done, down and pending', async (kind) => {
    const ensemble = await ChangingEnsemble.start([kind, kind, kind]);
    try {
      await using site = await ConsoleSite.open(browser, ensemble.connectString());
      const { page } = site;
      await site.enter('/', 'servers');
      await page.getByRole('cell', { name: 'leader', exact: true }).first().waitFor();
      const restarts = page.getByRole('region', { name: 'Restarts' });
      expect(await restarts.count()).toBe(0);
      const stateOf = (address: string) => restarts.getByRole('row').filter({ hasText: address });
      const leader = await ensemble.leader();
      const others = [...ensemble.servers.values()].filter((server) => server !== leader);
      for (const [i, server] of [...others, leader].entries()) {
        await server.kill('SIGTERM');
        await stateOf(server.address).getByText('away now').waitFor();
        if (i === 0) await restarts.getByRole('row').last().getByText(leader.address).waitFor();
        server.launch();
        await stateOf(server.address).getByText('restarted').waitFor();
        if (i < 2) await page.getByText(`${i + 1} of 3 servers were restarted`).waitFor();
        if (i < 2) await stateOf(leader.address).getByText('to come').waitFor();
        await stateOf(server.address)
          .getByRole('cell', { name: /^\d{4}-\d\d-\d\d / })
          .waitFor();
      }
      await page.getByText('All 3 servers were restarted').waitFor();
      site.expectNoComplaints();
    } finally {
      await ensemble.dispose();
    }
  });

  test.each(SERVER_KINDS)('differing settings of the servers of an ensemble of %s', async (kind) => {
    const ensemble = await ChangingEnsemble.start([kind, kind, kind]);
    try {
      await using site = await ConsoleSite.open(browser, ensemble.connectString());
      const { page } = site;
      await site.enter('/', 'servers');
      const table = page.getByRole('region', { name: 'Configuration' });
      const chips = table.getByText('differs', { exact: true });
      // Settings specific to a server, such as ports and directories, are not differences.
      await expect.poll(() => table.getByRole('columnheader').count()).toBe(4);
      await page.getByText('All servers have the same configuration').waitFor();
      expect(await chips.count()).toBe(0);

      const odd = ensemble.server(2);
      await odd.kill('SIGTERM');
      writeFileSync(
        join(odd.directory, 'zoo.cfg'),
        odd.staticText.replace(/^maxSessionTimeout=.*$/m, 'maxSessionTimeout=50000'),
      );
      odd.launch();
      await page.getByText('1 setting differs between servers.').waitFor();
      await expect.poll(() => chips.count()).toBe(1);
      const row = table.getByRole('row').filter({ has: page.getByText('differs', { exact: true }) });
      await row.getByText('maxSessionTimeout').waitFor();
      const names = await table.getByRole('columnheader').allTextContents();
      await expect
        .poll(() => row.getByRole('cell').allTextContents())
        .toEqual(names.slice(1).map((name) => (name === odd.address ? '50000' : '60000')));
      await page.getByLabel('Only differences').check();
      await expect.poll(() => table.getByRole('rowheader').count()).toBe(1);
      site.expectNoComplaints();
    } finally {
      await ensemble.dispose();
    }
  });

  test('several services, ours and Apache’s, each with its own log-in', async () => {
    await using blue = await TestServer.start();
    await using green = await ServerProcess.start('apache');
    await using site = await ConsoleSite.open(browser, blue.connectString, {
      name: 'service',
      others: { green: `127.0.0.1:${green.port}` },
    });
    const { client, page } = site;
    const elsewhere = await connect(`127.0.0.1:${green.port}`);
    await client.create('/only-blue', 'b');
    await elsewhere.create('/only-green', 'g');
    await site.enter();
    await page.getByRole('treeitem', { name: 'only-blue' }).waitFor();
    const services = page.getByLabel('Service', { exact: true });
    expect(await services.locator('option').allTextContents()).toEqual(['service', 'green']);

    await services.selectOption('green');
    await page.getByRole('heading', { name: 'Log in to green' }).waitFor();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'only-green' }).waitFor();
    expect(await page.getByRole('treeitem', { name: 'only-blue' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Create child' }).click();
    await page.getByLabel('Name').fill('made-here');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('/made-here is created.').waitFor();
    expect(await elsewhere.exists('/made-here')).not.toBeNull();
    expect(await client.exists('/made-here')).toBeNull();

    // The first session still exists, and changes come from the shown service.
    await services.selectOption('service');
    await page.getByRole('treeitem', { name: 'only-blue' }).waitFor();
    await elsewhere.create('/later', '');
    await client.create('/later-in-blue', '');
    await page.getByRole('treeitem', { name: 'later-in-blue' }).waitFor();
    expect(await page.getByRole('treeitem', { name: 'later', exact: true }).count()).toBe(0);

    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in to service' }).waitFor();
    await elsewhere.close();
    site.expectNoComplaints();
  });

  test('where the bytes and the znodes of a tree are', async () => {
    await using server = await ServerProcess.start('meerkat');
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    await client.createParents('/large/one', 'x'.repeat(3000));
    await client.create('/large/two', 'x'.repeat(1000));
    for (let i = 0; i < 5; i++) await client.createParents(`/many/${i}`, 'y');
    await site.enter('/', 'sizes');
    await page.getByRole('row', { name: /^large 3\.9 KiB 3 / }).waitFor();
    await client.create('/large/three', 'x'.repeat(4192));
    await page.getByRole('row', { name: /^large 8\.0 KiB 4 / }).waitFor();
    await page.getByRole('link', { name: 'large' }).click();
    await page.getByRole('row', { name: /^three 4\.1 KiB 1 / }).waitFor();
    await page.getByRole('button', { name: 'One level up' }).click();
    await page.getByLabel('Area by').selectOption('count');
    await page.getByRole('row', { name: /^many 5 B 6 / }).waitFor();
    site.expectNoComplaints();
  });
});
