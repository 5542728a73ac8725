import { acl, NoNodeError } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';

const textOf = (data: Uint8Array): string => new TextDecoder().decode(data);

describeWith(['chromium', 'apache'], 'the console changes znodes', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(SERVER_KINDS)('of %s: it saves the reviewed change to the shown version, and undoes it', async (kind) => {
    await using server = await ServerProcess.start(kind);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    await client.create('/config', '{"a":1}');
    await site.enter('/config');
    await page.getByRole('button', { name: 'Edit' }).click();
    const editor = page.getByRole('textbox', { name: 'New value of /config' });
    await editor.fill('{"a":2}');
    // Meanwhile another client changes the value.
    await client.set('/config', '{"a":1,"b":7}');
    await page.getByRole('button', { name: 'Review' }).click();
    await page.getByText('Another client has changed it').waitFor();
    await page.locator('.cm-deletedChunk').first().waitFor();
    // Again between review and save: the diff is against the newest value.
    await client.set('/config', '{"a":1,"b":8}');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('it is now at version 2').waitFor();
    expect(textOf((await client.get('/config')).data)).toBe('{"a":1,"b":8}');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('/config is saved.').waitFor();
    expect(textOf((await client.get('/config')).data)).toBe('{"a":2}');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Undone: give /config the data of version 2 again.').waitFor();
    expect(textOf((await client.get('/config')).data)).toBe('{"a":1,"b":8}');

    // An undo does not overwrite later changes by others.
    await page.getByRole('button', { name: 'Edit' }).click();
    await editor.fill('mine');
    await page.keyboard.press('Control+s');
    await page.getByRole('heading', { name: 'What would change' }).waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('/config is saved.').last().waitFor();
    await client.set('/config', 'theirs');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('the tree has changed since: nothing was undone').waitFor();
    expect(textOf((await client.get('/config')).data)).toBe('theirs');
    site.expectNoComplaints();
  });

  test('text typed while the page is busy is kept', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    await client.create('/notes', 'old');
    await site.enter('/notes');
    await page.locator('.cm-line', { hasText: 'old' }).waitFor();
    // Types as soon as the editor exists, before the page has finished rendering.
    await page.evaluate(`new MutationObserver((_, observer) => {
      const line = document.querySelector('dialog .cm-line');
      if (line === null || document.querySelector('dialog .quiet') !== null) return;
      observer.disconnect();
      line.textContent = 'new';
    }).observe(document.body, { childList: true, subtree: true })`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Review' }).click();
    await page.getByRole('heading', { name: 'What would change' }).waitFor();
    await page.locator('.cm-line').first().waitFor();
    expect(await page.getByText('Nothing would change.').count()).toBe(0);
    await page.keyboard.press('Control+s');
    await page.getByText('/notes is saved.').waitFor();
    expect(textOf((await client.get('/notes')).data)).toBe('new');

    // The same for an ACL that another client changes meanwhile: that change is not overwritten.
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Change ACL' }).click();
    const acl = page.getByRole('dialog').getByRole('textbox');
    await acl.fill('world:anyone:r');
    await client.setAcl('/notes', [{ scheme: 'world', id: 'anyone', perms: 29 }]);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    expect(await acl.inputValue()).toBe('world:anyone:r');
    expect((await client.getAcl('/notes')).acl[0]?.perms).toBe(29);
    site.expectNoComplaints();
  });

  test.each(SERVER_KINDS)(
    'of %s: it creates, copies, moves and deletes, shows what would be deleted, and undoes it',
    async (kind) => {
      await using server = await ServerProcess.start(kind);
      await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
      const { client, page } = site;
      await site.enter();
      await page.getByRole('button', { name: 'Create child' }).click();
      await page.getByLabel('Name').fill('app');
      await page.getByRole('textbox', { name: 'Value' }).fill('äöü');
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByText('/app is created.').waitFor();
      expect(textOf((await client.get('/app')).data)).toBe('äöü');
      await client.create('/app/secret', 'x', { acl: [acl.digest('ann', 'pw'), acl.world('cdr')] });
      await client.create('/app/secret/below', Buffer.from([0, 255]));

      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Copy to…' }).click();
      await page.getByLabel('To', { exact: true }).fill('/copy');
      await page.getByRole('button', { name: 'Copy', exact: true }).click();
      await page.getByText('3 znodes: /copy.').waitFor();
      expect((await client.get('/copy/secret/below')).data).toEqual(Uint8Array.of(0, 255));
      expect((await client.getAcl('/copy/secret')).acl).toEqual((await client.getAcl('/app/secret')).acl);

      await page.getByRole('region', { name: '/copy', exact: true }).waitFor();
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Move to…' }).click();
      await page.getByLabel('To', { exact: true }).fill('/moved');
      await page.getByRole('button', { name: 'Move', exact: true }).click();
      await page.getByText('3 znodes: /moved.').waitFor();
      expect(await client.exists('/copy')).toBeNull();

      await page.getByRole('region', { name: '/moved', exact: true }).waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('3 znodes with 9 B would go.').waitFor();
      const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete' });
      expect(await confirm.isDisabled()).toBe(true);
      await page.getByLabel('Type moved to confirm').fill('moved');
      await confirm.click();
      await page.getByText('/moved is deleted, with 2 below it.').waitFor();
      await expect(client.get('/moved')).rejects.toBeInstanceOf(NoNodeError);
      await page.getByRole('button', { name: 'Undo' }).click();
      await page.getByText('Undone: create /moved').waitFor();
      expect((await client.get('/moved/secret/below')).data).toEqual(Uint8Array.of(0, 255));
      expect((await client.getAcl('/moved/secret')).acl).toEqual((await client.getAcl('/app/secret')).acl);
      site.expectNoComplaints();
    },
  );

  test.each(SERVER_KINDS)(
    'of %s: it exports and imports like the command line, and uploads and downloads values as files',
    async (kind) => {
      await using server = await ServerProcess.start(kind);
      await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
      const { client, page } = site;
      await client.create('/from', Buffer.from([1, 0, 2]));
      await client.create('/from/a', 'text');
      await client.create('/to');
      await site.enter('/from');
      await page.getByRole('button', { name: 'More' }).click();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: 'Export tree' }).click(),
      ]);
      expect(download.suggestedFilename()).toBe('from.ndjson');
      const file = await download.path();
      await site.show('/to');
      await page.getByRole('region', { name: '/to', exact: true }).waitFor();
      const choose = async (item: string, path: string): Promise<void> => {
        await page.getByRole('button', { name: 'More' }).click();
        const [chooser] = await Promise.all([
          page.waitForEvent('filechooser'),
          page.getByRole('menuitem', { name: item }).click(),
        ]);
        await chooser.setFiles(path);
      };
      await choose('Import here', file);
      await page.getByText('1 znodes created below /to.').waitFor();
      expect(textOf((await client.get('/to/a')).data)).toBe('text');
      await choose('Upload value', file);
      await page.getByText('/to is saved.').waitFor();
      expect(textOf((await client.get('/to')).data)).toContain('"meerkatExport":1');
      await page.getByRole('button', { name: 'More' }).click();
      const [value] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: 'Download value' }).click(),
      ]);
      expect(value.suggestedFilename()).toBe('to');
      site.expectNoComplaints();
    },
  );

  test('without --write it offers no changes, and the backend refuses them', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString, { isWritable: false });
    const { page } = site;
    await site.enter();
    await page.getByText('read-only').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'More' }).isVisible()).toBe(true);
    expect(await page.getByRole('button', { name: 'Edit' }).count()).toBe(0);
    const status = await page.evaluate(async () => {
      const hello = (await (await fetch('./api/hello')).json()) as { csrf: string };
      const headers = { 'content-type': 'application/json', 'x-meerkat-csrf': hello.csrf };
      const body = JSON.stringify({ path: '/x', data: null });
      const answer = await fetch('./api/c/service/create', { method: 'POST', headers, body });
      return [answer.status, ((await answer.json()) as { code: string }).code];
    });
    expect(status).toEqual([403, 'read-only']);
    expect(await site.client.exists('/x')).toBeNull();
  });

  test('when the editor cannot be loaded it says so, with what to do', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    await client.create('/config', 'old');
    await page.route(/editor-view/, (route) => route.abort());
    await site.enter('/config');
    await page.getByRole('alert').getByText('The editor could not be loaded').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog').getByRole('alert').getByText('Nothing was changed').waitFor();
    await page.unroute(/editor-view/);
    await page.getByRole('dialog').getByRole('button', { name: 'Load the page again' }).click();
    await expect.poll(() => site.value()).toBe('old');
    site.expectNoComplaints();
  });
});
