import { gzipSync } from 'node:zlib';
import { TestServer } from '@meerkat/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';
import { PATIENCE_MS } from './pooled-page.ts';

describeWith(['chromium', 'apache'], 'the console shows a tree', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(SERVER_KINDS)('of %s, with live updates', async (kind) => {
    await using server = await ServerProcess.start(kind);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client } = site;
    await client.createParents('/app/config/database', '{"host":"db-1","port":5432}');
    const page = await site.enter('/app/config/database');
    await expect.poll(() => site.value()).toContain('"host": "db-1"');
    await expect.poll(() => page.getByRole('treeitem', { name: 'database' }).isVisible()).toBe(true);

    await client.set('/app/config/database', '{"host":"db-2","port":5432}');
    await expect.poll(() => site.value()).toContain('"host": "db-2"');
    await client.create('/app/config/another', 'x');
    await page.getByRole('treeitem', { name: 'another' }).waitFor();
    await client.delete('/app/config/another');
    await page.getByRole('treeitem', { name: 'another' }).waitFor({ state: 'detached' });

    await page.getByRole('tab', { name: 'Details' }).click();
    await page.getByText('Version of the data').waitFor();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('You may: everything.').or(page.getByText('what you may do is tried out')).waitFor();
    await page.getByText('No quota here or above.').waitFor();
    // Limits in the format of setquota in Apache 3.8; the server maintains the usage.
    const limits = 'count=2,bytes=-1=;byteHardLimit=4096;countHardLimit=9';
    await client.createParents('/zookeeper/quota/app/zookeeper_limits', limits);
    await client.create('/zookeeper/quota/app/zookeeper_stats', 'count=0,bytes=0');
    await client.set('/app/config/database', '{"host":"db-2","port":5433}');
    await page.getByText('Limits of /app').waitFor();
    await page.getByText(/^\d+ · soft limit 2 · hard limit 9( · over the soft limit)?$/).waitFor();
    await page.getByText(/no soft limit · hard limit 4\.0 KiB$/).waitFor();
    await page.getByText('Beyond a soft limit servers only warn').waitFor();

    await client.delete('/app/config/database');
    await page.getByText('/app/config/database is not there.').waitFor();
    await client.create('/app/config/database', 'back');
    await page.getByRole('tab', { name: 'Value' }).click();
    await expect.poll(() => site.value()).toBe('back');
    site.expectNoComplaints();
  });

  test('with values of many kinds', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    const zstd = 'KLUv/SALWQAAcGFja2VkIHRleHQ=';
    const snappy = [0xff, 6, 0, 0, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59, 1, 7, 0, 0, 1, 2, 3, 4, 0x61, 0x62, 0x63];
    // new ObjectOutputStream(…).writeObject("hello")
    const java = Buffer.from('aced000574000568656c6c6f', 'hex');
    const values: readonly (readonly [string, Uint8Array | string | null, string, string])[] = [
      ['text', 'plain words', 'plain words', 'Text'],
      ['json', '[12345678901234567890,1.50]', '12345678901234567890,', 'JSON'],
      ['xml', '<a><b c="d"/></a>', '<b c="d"/>', 'XML'],
      ['gzip', gzipSync('{"packed":"json"}'), '"packed": "json"', 'JSON'],
      ['zstd', Buffer.from(zstd, 'base64'), 'packed text', 'Text'],
      ['snappy', Buffer.from(snappy), 'abc', 'Text'],
      ['java', java, '"hello"', 'Java object'],
    ];
    for (const [name, data] of values) await client.create(`/${name}`, data);
    await client.create('/bytes', Buffer.from([0, 1, 2, 254, 255]));
    await client.create('/nothing', null);
    await client.create('/damaged', Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]));
    await site.enter();
    for (const [name, , expected, format] of values) {
      await site.show(`/${name}`);
      await page.getByRole('region', { name: `/${name}`, exact: true }).waitFor();
      await expect.poll(() => site.value(), { timeout: PATIENCE_MS, message: name }).toContain(expected);
      await page.locator('option:checked', { hasText: `Automatic (${format})` }).waitFor({ state: 'attached' });
    }
    await site.show('/bytes');
    await page.getByText('00000000  00 01 02 fe ff').waitFor();
    await site.show('/nothing');
    await page.getByText('This znode holds nothing.').waitFor();
    await site.show('/damaged');
    await page.getByText('It begins as gzip does, and cannot be unpacked').waitFor();

    // message Point { int32 x = 1; string label = 2; repeated sint32 path = 3; }
    await client.create('/proto', Buffer.from('08960112036f7570 1a03010203'.replace(' ', ''), 'hex'));
    await site.show('/proto');
    await page.getByLabel('Shown as').selectOption('protobuf');
    await page.getByLabel('Message, such as').fill('Point');
    await page
      .getByLabel('Schema, .proto')
      .fill('syntax="proto3"; message Point { int32 x = 1; string label = 2; repeated sint32 path = 3; }');
    await expect.poll(() => site.value()).toContain('"label": "oup"');
    expect(await site.value()).toContain('-1,');
    site.expectNoComplaints();
  });

  test.each(SERVER_KINDS)('of many znodes of %s, found as one types', async (kind) => {
    await using server = await ServerProcess.start(kind);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    await client.create('/many');
    for (let i = 0; i < 5000; i += 500) {
      const transaction = client.transaction();
      for (let k = i; k < i + 500; k++) transaction.create(`/many/n-${`${k}`.padStart(5, '0')}`);
      await transaction.commit();
    }
    await site.enter();
    await page.keyboard.press('/');
    await page.keyboard.type('N-04711');
    await page.getByRole('option', { name: '/many/n-04711' }).waitFor();
    await page.keyboard.press('Enter');
    const row = page.getByRole('treeitem', { name: 'n-04711' });
    await row.waitFor();
    expect(await row.getAttribute('aria-posinset')).toBe('4712');
    expect(await row.getAttribute('aria-setsize')).toBe('5000');
    // Only the visible rows of 5,000 are in the DOM.
    expect(await page.getByRole('treeitem').count()).toBeLessThan(120);
    await page.keyboard.press('End');
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor();
    await page.keyboard.press('Home');
    await expect.poll(() => page.getByRole('treeitem', { name: 'n-00000' }).isVisible()).toBe(true);
    site.expectNoComplaints();
  });
});
