import { acl, connect, Perm } from '@meerkat/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningCommand } from '../cli/harness.ts';
import { describeWith } from '../harness/peers.ts';
import { type ServerKind, ServerProcess } from '../harness/server-process.ts';
import { violationsOf } from './accessibility.ts';
import { launchBrowser } from './console-site.ts';
import { PooledPage } from './pooled-page.ts';

type Site = AsyncDisposable & { readonly url: string };

const CONSOLE = { hasAdmin: true, config: { 'console.enabled': true } } as const;
const OURS_WITH_FILES = 'our server, with its directory';
/** The server whose past is shown, and where the console runs. */
const PLACES: readonly [string, { readonly kind: ServerKind; open(server: ServerProcess): Promise<Site> }][] = [
  ["Apache's server, with its directory", { kind: 'apache', open: withFiles }],
  [OURS_WITH_FILES, { kind: 'meerkat', open: withFiles }],
  ['our server, on its admin port', { kind: 'meerkat', open: onAdminPort }],
];
/** Trees rebuilt from our files are tested in `cli/past.long.test.ts`. */
const TREES = PLACES.filter(([name]) => name !== OURS_WITH_FILES);

describeWith(['chromium', 'apache'], 'the console shows the past', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(PLACES)('the history of a znode of %s, and who wrote it', async (_name, { kind, open }) => {
    await using server = await ServerProcess.start(kind, kind === 'meerkat' ? CONSOLE : {});
    const client = await connect(`127.0.0.1:${server.port}`);
    await client.create('/config', 'first');
    await client.set('/config', 'second');
    await client.set('/config', 'third');
    const session = `0x${client.session?.id.toString(16)}`;
    await using site = await open(server);
    await using lent = await PooledPage.acquire(browser);
    const { page } = lent;
    await page.goto(site.url);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'config' }).click();
    await page.getByRole('tab', { name: 'History' }).click();
    await page.getByText('3 of 3').waitFor();
    await page.getByText(`by session ${session}${open === onAdminPort ? ' of 127.0.0.1:' : ''}`).waitFor();
    await page.locator('.cm-deletedChunk', { hasText: 'second' }).waitFor();
    const slider = page.getByRole('slider', { name: 'State' });
    await slider.press('Home');
    await page.getByText('1 of 3').waitFor();
    await page.getByLabel('Compared with').selectOption('now');
    await page.locator('.cm-deletedChunk', { hasText: 'third' }).waitFor();
    await client.delete('/config');
    await page.getByText('/config is not there.').waitFor();
    await slider.press('End');
    await page.getByText('4 of 4').waitFor();
    await page.getByText('deleted', { exact: true }).waitFor();
    await client.close();
  });

  test.each(TREES)('the whole past tree of %s, and its changes since', async (_name, { kind, open }) => {
    await using server = await ServerProcess.start(kind, kind === 'meerkat' ? CONSOLE : {});
    await using client = await connect(`127.0.0.1:${server.port}`);
    await client.createParents('/app/stays', 'one');
    await client.create('/app/goes', 'x');
    await client.addAuth('digest', 'ann:pw');
    await client.create('/secret', 'hidden', { acl: [acl.digest('ann', 'pw')] });
    await client.createParents('/secret/below', 'hidden, too');
    const then = `0x${(await client.exists('/secret/below'))?.czxid.toString(16)}`;
    await client.set('/app/stays', 'two');
    await client.delete('/app/goes');
    await client.createParents('/app/comes/deep', 'new');
    await client.set('/secret', 'changed');
    await using site = await open(server);
    await using lent = await PooledPage.acquire(browser);
    const { page } = lent;
    await page.goto(site.url);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('link', { name: 'Time' }).click();

    // The newest state, and then the one before the changes.
    const tree = page.getByRole('region', { name: 'Znodes as they were' });
    await tree.getByRole('button', { name: 'app' }).click();
    await tree.getByRole('button', { name: 'comes' }).waitFor();
    expect(await tree.getByRole('button', { name: 'goes' }).count()).toBe(0);
    await page.getByLabel('Zxid or time').fill(then);
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText(`as of ${then}`).waitFor();
    await tree.getByRole('button', { name: 'goes' }).waitFor();
    await tree.getByRole('button', { name: 'comes' }).waitFor({ state: 'detached' });
    await tree.getByRole('button', { name: 'stays' }).click();
    await expect.poll(() => page.locator('.cm-content .cm-line').allTextContents()).toEqual(['one']);
    // A user without READ now does not see the past value either.
    await tree.getByRole('button', { name: 'secret' }).click();
    await page.getByText('This is not shown: you may not').waitFor();
    expect(await page.getByText('hidden').count()).toBe(0);
    expect(await tree.getByRole('button', { name: 'below' }).count()).toBe(0);

    await tree.getByRole('button', { name: '/', exact: true }).click();
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    const rows = page.getByRole('region', { name: 'Differences' }).getByRole('row');
    await expect
      .poll(async () => (await rows.allTextContents()).slice(1))
      .toEqual([
        '/app/comescreated',
        '/app/comes/deepcreated',
        '/app/goesdeleted',
        '/app/stayschanged',
        '/secretchanged',
      ]);
    await page.getByText('1 may not be read: what was below them is left out.').waitFor();
    await rows.getByRole('button', { name: '/app/stays' }).click();
    await page.locator('.cm-deletedChunk', { hasText: 'one' }).waitFor();
    await page.getByRole('button', { name: '/secret' }).click();
    await page.getByText('This is not shown: you may not').waitFor();

    // The slider starts at the first txn of the log.
    await page.getByRole('button', { name: 'End comparison' }).click();
    await page.getByRole('slider', { name: 'Moment' }).press('Home');
    await tree.getByRole('button', { name: 'app' }).waitFor({ state: 'detached' });
    await page.getByLabel('Zxid or time').fill('whenever');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('alert').getByText('is neither a zxid').waitFor();
  });

  test('on the admin port only what both the current and the past ACL allow the user to read', async () => {
    await using server = await ServerProcess.start('meerkat', CONSOLE);
    await using client = await connect(`127.0.0.1:${server.port}`);
    await client.addAuth('digest', 'ann:pw');
    const own = [acl.digest('ann', 'pw')];
    // Open for a moment, as when a program sets the ACL after the value.
    await client.create('/closed', 'was open');
    await client.setAcl('/closed', own);
    await client.create('/opened', 'was closed', { acl: own });
    await client.setAcl('/opened', [acl.world(Perm.all)]);
    await client.create('/gone', 'is gone', { acl: own });
    await client.delete('/gone');
    const seen = async (login: object): Promise<Record<string, readonly string[] | number>> => {
      const console = await enterConsole(server, login);
      const values: Record<string, readonly string[] | number> = {};
      for (const path of ['/closed', '/opened', '/gone']) {
        const answer = await console.get(`history?path=${path}`);
        values[path] = answer.status === 200 ? textsOf((await answer.json()) as HistoryAnswer) : answer.status;
        const { data, isWithheld } = (await (await console.get(`past/znode?at=now&path=${path}`)).json()) as PastAnswer;
        values[`${path} now`] = isWithheld ? ['withheld'] : [decode(data)];
      }
      return values;
    };
    expect(await seen({ method: 'none' })).toEqual({
      '/closed': 403,
      '/closed now': ['withheld'],
      '/opened': ['withheld', 'was closed'],
      '/opened now': ['was closed'],
      '/gone': ['withheld', ''],
      '/gone now': [''],
    });
    expect(await seen({ method: 'digest', user: 'ann', password: 'pw' })).toMatchObject({
      '/closed': ['was open', 'was open'],
      '/closed now': ['was open'],
    });
  });

  test('on the admin port with the keyboard, on a screen of 320 pixels, without axe violations', async () => {
    await using server = await ServerProcess.start('meerkat', CONSOLE);
    await using client = await connect(`127.0.0.1:${server.port}`);
    await client.create('/motd', 'one');
    const then = `0x${(await client.exists('/motd'))?.czxid.toString(16)}`;
    await client.set('/motd', 'two');
    await using site = await onAdminPort(server);
    await using lent = await PooledPage.acquire(browser, { width: 320, height: 640 });
    const { page } = lent;
    await page.goto(`${site.url}#/service/time/motd`);
    await page.getByRole('button', { name: 'Log in' }).press('Enter');
    await page.getByText('version 1', { exact: true }).waitFor();
    await expectAccessible(page);
    await page.getByLabel('Zxid or time').focus();
    await page.keyboard.insertText(then);
    await page.keyboard.press('Enter');
    await page.getByText(`as of ${then}`).waitFor();
    await page.getByText('version 0', { exact: true }).waitFor();
    await page.getByLabel('Compare with').press('Enter');
    await page.getByRole('region', { name: 'Differences' }).getByRole('button', { name: '/motd' }).press('Enter');
    await page.locator('.cm-deletedChunk', { hasText: 'one' }).waitFor();
    await expectAccessible(page);
    await page.goto(`${site.url}#/service/tree/motd`);
    await page.getByRole('tab', { name: 'History' }).press('Enter');
    await page.getByText('2 of 2').waitFor();
    await expectAccessible(page);
  });
});

async function expectAccessible(page: Page): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await violationsOf(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await violationsOf(page, true)).toEqual([]);
}

interface HistoryAnswer {
  readonly entries: readonly { readonly data: string | null; readonly isWithheld: boolean }[];
}

interface PastAnswer {
  readonly data: string | null;
  readonly isWithheld: boolean;
}

function textsOf({ entries }: HistoryAnswer): readonly string[] {
  return entries.map(({ data, isWithheld }) => (isWithheld ? 'withheld' : decode(data)));
}

function decode(data: string | null): string {
  return Buffer.from(data ?? '', 'base64').toString();
}

/** Sends requests like the page. */
async function enterConsole(
  { adminPort }: ServerProcess,
  login: object,
): Promise<{ get(url: string): Promise<Response> }> {
  const api = `http://127.0.0.1:${adminPort}/console/api`;
  const hello = await fetch(`${api}/hello`);
  const { csrf } = (await hello.json()) as { readonly csrf: string };
  const headers = { 'content-type': 'application/json', 'x-meerkat-csrf': csrf };
  const cookie = (hello.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const entered = await fetch(`${api}/c/service/login`, {
    method: 'POST',
    headers: { ...headers, cookie },
    body: JSON.stringify(login),
  });
  expect(entered.status).toBe(200);
  const renewed = (entered.headers.get('set-cookie') ?? cookie).split(';')[0] ?? '';
  return { get: (url) => fetch(`${api}/c/service/${url}`, { headers: { cookie: renewed } }) };
}

async function onAdminPort({ adminPort }: ServerProcess): Promise<Site> {
  return { url: `http://127.0.0.1:${adminPort}/console/`, async [Symbol.asyncDispose]() {} };
}

/** The console as a command, with the files of a server. */
async function withFiles(server: ServerProcess): Promise<Site> {
  const args = ['console', '--server', `127.0.0.1:${server.port}`, '--dir', server.dataDirectory];
  const command = new RunningCommand([...args, '--listen', '127.0.0.1:0'], {}, false);
  const url = await new Promise<string>((resolve, reject) => {
    let printed = '';
    command.child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk;
      const [, found] = /open (\S+)\n/.exec(printed) ?? [];
      if (found !== undefined) resolve(found);
    });
    command.child.once('exit', () => reject(new Error(`the console ended: ${printed}`)));
  });
  return {
    url,
    async [Symbol.asyncDispose]() {
      command.child.kill('SIGINT');
      expect((await command.ended).exitCode).toBe(130);
    },
  };
}
