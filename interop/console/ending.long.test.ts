import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acl, type Client, connect } from '@meerkat/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { adminPorts } from '../../packages/cli/src/draining/admin-ports.ts';
import { RunningCommand } from '../cli/harness.ts';
import { Ensemble } from '../ensemble/ensemble.ts';
import { writeCertificates } from '../harness/admin-certificates.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';
import { PooledPage } from './pooled-page.ts';

const CLIENT = { sessionTimeoutMs: 60_000 };

describeWith(['chromium', 'apache'], 'the console ends the session of another client', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test('at a server that its client is not connected to, after a preview, with the keyboard alone', async () => {
    const place = { kind: 'meerkat', hasAdmin: true } as const;
    const ensemble = await Ensemble.start([place, place, place]);
    onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
    try {
      const [one, , three] = ensemble.members.map(({ server }) => server);
      const client = await connect(`127.0.0.1:${three?.port}`, CLIENT);
      for (let i = 0; i < 12; i++) await client.create(`/mine-${i}`, '', { mode: 'ephemeral' });
      await client.get('/mine-1', { watch: true });
      const session = idOf(client);
      // Only the first admin port is reachable.
      await using site = await openSite(browser, ensemble.connectString, [one?.adminPort ?? 0, 1, 1]);
      const { page } = site;
      await site.enter('/', 'sessions');
      await press(page, session);
      await press(page, 'End session…');
      const dialog = page.getByRole('dialog', { name: `End session ${session}?` });
      await dialog.getByText(`connected to 127.0.0.1:${three?.port}`).waitFor();
      await dialog.getByText('12 ephemeral znodes go with it').waitFor();
      await dialog.getByText('/mine-0', { exact: true }).waitFor();
      await dialog.getByText('and 7 more').waitFor();
      await dialog.getByText('1 path is watched no more').waitFor();

      // Closing the dialog ends nothing.
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await client.get('/mine-0');
      await press(page, session);
      await press(page, 'End session…');
      await press(page, 'End session');
      await page.getByText(`Session ${session} has ended, and 12 ephemeral znodes with it.`).waitFor();
      await expect.poll(() => idOf(client), { timeout: 60_000 }).not.toBe(session);
      await page.getByRole('button', { name: session }).waitFor({ state: 'detached' });
      expect(await site.client.exists('/mine-0')).toBeNull();
      await expect.poll(() => one?.output).toContain(`session ${session} was ended by the admin command`);
      await client.close();
      site.expectNoComplaints();
    } finally {
      await ensemble.dispose();
    }
  });

  test('and reports why not: no permission, the session is gone, or the console may not end sessions', async () => {
    await using server = await ServerProcess.start('meerkat', {
      hasAdmin: true,
      saslUsers: { ann: 'secret' },
    });
    const place = `127.0.0.1:${server.port}`;
    const client = await connect(place, CLIENT);
    await using site = await openSite(browser, place, [server.adminPort]);
    const { page } = site;
    await site.client.setAcl('/', [
      { perms: 31, scheme: 'digest', id: 'ann:zEwfeoXyQEqGJtBYXPZ1QbDpXZI=' },
      { perms: 1, scheme: 'world', id: 'anyone' },
    ]);
    await site.enter('/', 'sessions');
    await open(page, idOf(client));
    await page.getByRole('status').getByText('No permission to end sessions').waitFor();
    expect(await page.getByRole('button', { name: 'End session…' }).count()).toBe(0);
    await page.keyboard.press('Escape');

    // The console's own session is ended by logging out.
    await page.getByRole('row').filter({ hasText: 'this console' }).getByRole('button').click();
    await page.getByText('log out to end it').waitFor();
    await page.keyboard.press('Escape');

    // A session that ended between the question and the confirmation.
    await login(page, 'digest', 'super', 'test');
    await open(page, idOf(client));
    await page.getByRole('button', { name: 'End session…' }).click();
    await client.close();
    await page.getByRole('button', { name: 'End session', exact: true }).click();
    await page.getByRole('alert').getByText('It has ended already').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    const second = await connect(place, CLIENT);
    await login(page, 'sasl', 'ann', 'secret');
    await open(page, idOf(second));
    await page.getByRole('status').getByText('Sessions are not ended by who logs in with SASL').waitFor();
    site.expectNoComplaints();

    await using reader = await openSite(browser, place, [server.adminPort], false);
    await reader.enter('/', 'sessions');
    await open(reader.page, idOf(second));
    await reader.page.getByText('This console only reads.').waitFor();
    await using far = await openSite(browser, place, [1]);
    await far.enter('/', 'sessions');
    await open(far.page, idOf(second));
    await far.page.getByRole('status').getByText('No admin port answers').waitFor();
    await second.close();
  });

  test("and reports that Apache's servers do not support it", async () => {
    await using server = await ServerProcess.start('apache', { hasAdmin: true });
    const place = `127.0.0.1:${server.port}`;
    const client = await connect(place, CLIENT);
    await using site = await openSite(browser, place, [server.adminPort]);
    await site.enter('/', 'sessions');
    await open(site.page, idOf(client));
    await site.page.getByRole('status').getByText('These servers end no sessions of others').waitFor();
    await client.get('/');
    await client.close();
    site.expectNoComplaints();
  });

  test('with the options of the command: the port, and the credentials of the console on demand', async () => {
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
    const place = `127.0.0.1:${server.port}`;
    const client = await connect(place, CLIENT);
    await client.setAcl('/', [
      { perms: 31, scheme: 'digest', id: 'ann:zEwfeoXyQEqGJtBYXPZ1QbDpXZI=' },
      { perms: 1, scheme: 'world', id: 'anyone' },
    ]);
    await using console = await startConsole(server, '--auth', 'digest:super:test');
    await using lent = await PooledPage.acquire(browser);
    const { page } = lent;
    await page.goto(console.url);
    await page.getByLabel('How').selectOption('none');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('link', { name: 'Sessions' }).click();
    await open(page, idOf(client));
    await page.getByRole('status').getByText('No permission to end sessions').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('How').selectOption('own');
    await page.getByRole('button', { name: 'Log in' }).click();
    await open(page, idOf(client));
    await page.getByRole('button', { name: 'End session…' }).waitFor();
    await client.close();
  });

  test('with TLS, with the certificate of the logged-in user, and with that of the console on demand', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ending-tls-'));
    try {
      const { config, ca, root, ann } = writeCertificates(directory);
      await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config });
      const place = `127.0.0.1:${server.port}`;
      const client = await connect(place, CLIENT);
      await client.setAcl('/', [acl.x509('CN=root'), acl.world('r')]);
      const tls = ['--https', '--tls-ca', ca, '--tls-cert', root];
      await using console = await startConsole(server, ...tls);
      await using lent = await PooledPage.acquire(browser);
      const { page } = lent;
      await page.goto(console.url);
      const offered = page.getByRole('button', { name: 'End session…' });
      const cases = [
        // The port requires a certificate, and that of the console is not used on behalf of another user.
        ['none', null, page.getByRole('status').getByText('No admin port answers')],
        ['certificate', ann, page.getByRole('status').getByText('No permission to end sessions')],
        ['certificate', root, offered],
        ['own', null, offered],
      ] as const;
      for (const [how, file, found] of cases) {
        await page.getByLabel('How').selectOption(how);
        if (file !== null) await page.getByLabel('Certificate and key').fill(readFileSync(file, 'utf8'));
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('link', { name: 'Sessions' }).click();
        await open(page, idOf(client));
        await found.waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Log out' }).click();
      }
      await client.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test('also on the admin port of a server', async () => {
    await using server = await ServerProcess.start('meerkat', {
      hasAdmin: true,
      config: { 'console.enabled': true, 'console.write': true },
    });
    const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
    const session = idOf(client);
    await using lent = await PooledPage.acquire(browser);
    const { page } = lent;
    await page.goto(`http://127.0.0.1:${server.adminPort}/console/#/service/sessions`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await open(page, session);
    await page.getByRole('button', { name: 'End session…' }).click();
    await page.getByRole('button', { name: 'End session', exact: true }).click();
    await page.getByText(`Session ${session} has ended`).waitFor();
    await expect.poll(() => idOf(client), { timeout: 60_000 }).not.toBe(session);
    await client.close();
  });
});

/** The console as a command, with the admin port of a server. */
async function startConsole(
  server: ServerProcess,
  ...options: readonly string[]
): Promise<AsyncDisposable & { readonly url: string }> {
  const place = ['--server', `127.0.0.1:${server.port}`, '--http-port', `${server.adminPort}`];
  const command = new RunningCommand(
    ['console', '--write', '--listen', '127.0.0.1:0', ...place, ...options],
    {},
    false,
  );
  const address = /open (\S+)\n/;
  await command.until('its address', ({ stdout }) => address.test(stdout));
  return {
    url: address.exec(command.stdout)?.[1] ?? '',
    async [Symbol.asyncDispose]() {
      command.child.kill('SIGINT');
      expect((await command.ended).exitCode).toBe(130);
    },
  };
}

function openSite(
  browser: Browser,
  servers: string,
  ports: readonly number[],
  isWritable = true,
): Promise<ConsoleSite> {
  const monitored = servers.split(',').map((name) => {
    const [host = '', port] = name.split(':');
    return { host, port: Number(port), name, tls: null };
  });
  const { signal } = new AbortController();
  const admin = adminPorts({ servers: monitored, ports, tls: null, timeoutMs: 20_000, signal });
  return ConsoleSite.open(browser, servers, { isWritable, cluster: { admin } });
}

async function open(page: Page, session: string): Promise<void> {
  await page.getByRole('button', { name: session }).click();
}

/** Focuses a button with the Tab key, and presses it. */
async function press(page: Page, name: string): Promise<void> {
  const button = page.getByRole('button', { name, exact: true });
  await button.waitFor();
  for (let i = 0; i < 200; i++) {
    if ((await button.and(page.locator(':focus')).count()) > 0) {
      await page.keyboard.press('Enter');
      return;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`the tab key never reaches "${name}"`);
}

async function login(page: Page, how: string, user: string, password: string): Promise<void> {
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('How').selectOption(how);
  await page.getByRole('textbox', { name: 'User' }).fill(user);
  await page.getByRole('textbox', { name: 'Password' }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

function idOf(client: Client): string {
  return `0x${BigInt.asUintN(64, client.session?.id ?? 0n).toString(16)}`;
}
