import { acl, connect, digestAuth } from '@meerkat/client';
import { OpCode } from '@meerkat/protocol';
import { TcpProxy, TestCertificates, TestServer } from '@meerkat/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';
import { OldServer } from './old-server.ts';
import { PATIENCE_MS, PooledPage } from './pooled-page.ts';

describeWith(['chromium', 'apache'], 'the console reports problems', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test('when no server is available, and when the service goes down and recovers', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString, {
      cluster: { connection: { servers: server.connectString, sessionTimeoutMs: 4000 } },
    });
    const { client, page } = site;
    await client.create('/here', 'first');
    await site.enter('/here');
    await expect.poll(() => site.value()).toBe('first');
    await server.stop();
    await page.getByText(/trying to get back/).waitFor();
    await site.show('/elsewhere');
    await page.getByRole('alert').getByText('No server answers').waitFor();
    await server.restart();
    await page.locator('.state.good').waitFor();
    await site.show('/here');
    await expect.poll(() => site.value()).toBe('first');

    await server.stop();
    await page.getByText(/trying to get back/).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('No server answers').waitFor();
    site.expectNoComplaints();
  });

  test('when the service has ended its session and a new one has started', async () => {
    await using server = await ServerProcess.start('apache');
    await using proxy = await TcpProxy.start({ target: server.port });
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`, {
      cluster: { connection: { servers: proxy.connectString, sessionTimeoutMs: 4000 } },
    });
    await using client = await connect(`127.0.0.1:${server.port}`);
    const { page } = site;
    await client.create('/there', 'before');
    await site.enter('/there');
    await expect.poll(() => site.value()).toBe('before');
    await page.getByRole('button', { name: 'Create child' }).click();
    await page.getByLabel('Name').fill('held');
    await page.getByLabel('Kind').selectOption('ephemeral');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('/there/held is created.').waitFor();
    await proxy.refuse();
    await proxy.cut();
    await page.getByText(/trying to get back/).waitFor();
    await site.show('/elsewhere');
    await page.getByRole('alert').getByText('No server answers').waitFor();
    // The server has ended the session.
    await expect.poll(() => client.exists('/there/held')).toBeNull();
    await client.set('/there', 'meanwhile');
    await proxy.accept();
    await page.getByText(/^The service has ended the session 0x[0-9a-f]+ of this console/).waitFor();
    await page.locator('.state.good').waitFor();
    await site.show('/there/held');
    await page.getByText('/there/held is not there.').waitFor();
    await site.show('/there');
    await expect.poll(() => site.value()).toBe('meanwhile');
    await page.getByRole('treeitem', { name: 'held' }).waitFor({ state: 'detached' });
    const said = page.locator('.toast').filter({ hasText: 'The service has ended the session' });
    // More than one session may have ended meanwhile, on a busy machine.
    while ((await said.count()) > 0) {
      await said.first().getByRole('button', { name: 'Close' }).click();
    }
    site.expectNoComplaints();
  });

  test('of a server of 3.4: what is missing, and why', async () => {
    await using server = await ServerProcess.start('apache');
    await using old = await OldServer.start(server.port);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`, {
      cluster: { connection: { servers: `127.0.0.1:${old.port}` } },
    });
    await using client = await connect(`127.0.0.1:${server.port}`);
    const { page } = site;
    await client.createParents('/app/config', 'first');
    await client.createParents('/locks/_c_00000000-0000-0000-0000-000000000000-lock-0000000000', 'x', {
      mode: 'ephemeral',
    });
    await site.enter('/app/config');
    await expect.poll(() => site.value()).toBe('first');
    // Unsupported requests were probed at log-in, so later requests do not break the connection.
    const refused = [...old.refusedOps];
    expect(new Set(refused)).toEqual(new Set([OpCode.whoAmI, OpCode.addWatch]));
    await page.getByRole('treeitem', { name: 'config' }).waitFor();
    await client.set('/app/config', 'second');
    await expect.poll(() => site.value()).toBe('second');
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('The server does not say as whom it knows you (before 3.7)').waitFor();

    await site.show('/app', 'live');
    await page.getByText('This service has no persistent watches (before 3.6)').waitFor();
    await client.set('/app/config', 'third');
    await page.getByRole('button', { name: '/app/config' }).first().waitFor();

    const untold = 'This service reports no changes of a whole tree (before 3.6)';
    await page.getByRole('combobox', { name: 'Search all paths' }).fill('conf');
    await page.getByText(untold).waitFor();
    await page.keyboard.press('Escape');
    await site.show('/', 'sizes');
    await page.getByText(untold).waitFor();
    await site.show('/', 'lines');
    await page.getByText(untold).waitFor();
    await page.getByRole('link', { name: '/locks' }).waitFor();
    await site.show('/', 'sessions');
    await page.getByText('this console').waitFor();
    await site.show('/', 'servers');
    await page.getByRole('cell', { name: 'standalone' }).waitFor();
    await page.getByText('This service has no /zookeeper/config: servers before 3.5').waitFor();
    expect(old.refusedOps).toEqual(refused);

    await site.show('/app/config');
    await page.getByRole('button', { name: 'Create child' }).click();
    await page.getByLabel('Name').fill('new');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('alert').getByText('Servers before 3.5 cannot create').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.state.good').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'New value of' }).fill('saved');
    await page.getByRole('button', { name: 'Review' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('/app/config is saved.').waitFor();
    site.expectNoComplaints();
  });

  test.each(SERVER_KINDS)('when permissions are missing, until a log-in that has them, at %s', async (kind) => {
    await using server = await ServerProcess.start(kind);
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { client, page } = site;
    await client.addAuth(digestAuth('ann', 'pw').scheme, digestAuth('ann', 'pw').auth);
    await client.create('/secret', 'hidden', { acl: [acl.digest('ann', 'pw')] });
    await client.create('/secret/below', 'x');
    await site.enter('/secret');
    await page.getByRole('alert').getByText('No permission').waitFor();
    expect(await page.getByText('hidden').count()).toBe(0);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('How').selectOption('digest');
    await page.getByRole('textbox', { name: 'User' }).fill('ann');
    await page.getByRole('textbox', { name: 'Password' }).fill('pw');
    await page.getByRole('button', { name: 'Log in' }).click();
    await expect.poll(() => site.value()).toBe('hidden');
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('who knows the password of ann').waitFor();
    await page.getByText('You may: everything.').waitFor();
    site.expectNoComplaints();
  });

  test('when a password is wrong, where passwords are checked', async () => {
    await using server = await ServerProcess.start('meerkat', { saslUsers: { bob: 'builder' } });
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { page } = site;
    await page.goto(site.console.url);
    await page.getByLabel('How').selectOption('sasl');
    await page.getByRole('textbox', { name: 'User' }).fill('bob');
    await page.getByRole('textbox', { name: 'Password' }).fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('The service refuses these credentials').waitFor();
    await page.getByRole('textbox', { name: 'Password' }).fill('builder');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('sasl:bob').waitFor();
    site.expectNoComplaints();
  });

  test("with certificates: an invalid one, a valid one, and the expiry of the server's", async () => {
    using certificates = new TestCertificates();
    await using server = await TestServer.start({ tls: certificates });
    const tls = certificates.client('ann');
    const name = server.connectString;
    await using site = await ConsoleSite.open(browser, name, {
      cluster: {
        connection: { servers: name, tls },
        servers: [{ host: '127.0.0.1', port: Number(name.split(':')[1]), name, tls }],
      },
    });
    const { page } = site;
    await page.goto(site.console.url);
    await page.getByLabel('How').selectOption('certificate');
    await page.getByLabel('Certificate and key, PEM').fill('nothing of the kind');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('expected a certificate and its key').waitFor();
    await page.getByLabel('Certificate and key, PEM').fill(`${tls.cert}\n${tls.key}`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('x509:CN=ann').waitFor();
    await site.show('/', 'servers');
    await page.getByRole('cell', { name: /^in \d+ days$/ }).waitFor();
    site.expectNoComplaints();
  });

  test('with a megabyte, with odd names, and while the tree changes', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    const lines = Array.from({ length: 12_000 }, (_, i) => `line ${i} ${'x'.repeat(70)}`).join('\n');
    await client.create('/large', lines.slice(0, 1_000_000));
    await client.create('/binary', Buffer.alloc(1_000_000, 0x80));
    const odd = ['with space ', '<script>alert(1)', 'a%2Fb', '#hash?query', '日本語', '‮rtl', 'quote\'"'];
    for (const name of odd) await client.create(`/${name}`, `value of ${name}`);
    await site.enter('/large');
    await expect.poll(() => site.value()).toContain('line 0 ');
    await site.show('/binary');
    await page.getByText('00000000  80 80 80').waitFor();
    for (const name of odd) {
      await site.show(`/${name}`);
      await expect.poll(() => site.value(), { timeout: PATIENCE_MS, message: name }).toBe(`value of ${name}`.trim());
    }
    await page.getByRole('treeitem', { name: '\\u202ertl' }).waitFor();
    await client.deleteRecursive('/quote\'"');
    await page.getByText('/quote\'" is not there.').waitFor();
    site.expectNoComplaints();
  });

  test('with an Apache server that allows no four-letter words', async () => {
    await using server = await ServerProcess.start('apache', { config: { '4lw.commands.whitelist': 'srvr' } });
    await using site = await ConsoleSite.open(browser, `127.0.0.1:${server.port}`);
    const { page } = site;
    await site.enter('/', 'servers');
    await page.getByRole('cell', { name: 'standalone' }).waitFor();
    await page.getByText('These servers do not allow mntr, conf').waitFor();
    await site.show('/', 'sessions');
    await page.getByText('does not allow cons: add it to 4lw.commands.whitelist').waitFor();
    site.expectNoComplaints();
  });

  test('on the admin port of a server, where enabled', async () => {
    await using plain = await ServerProcess.start('meerkat', { hasAdmin: true });
    expect((await fetch(`http://127.0.0.1:${plain.adminPort}/console/`)).status).toBe(404);
    const config = { 'console.enabled': true, 'console.write': true };
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config });
    await using lent = await PooledPage.acquire(browser);
    const { page } = lent;
    await page.goto(`http://127.0.0.1:${server.adminPort}/console`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor();
    await page.getByRole('button', { name: 'Create child' }).click();
    await page.getByLabel('Name').fill('made');
    // Longer than other requests to the admin port may be.
    await page.getByRole('textbox', { name: 'Value' }).fill('x'.repeat(5000));
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('/made is created.').waitFor();
    await page.getByRole('treeitem', { name: 'made' }).waitFor();
    expect(await server.askAdmin('/commands/ruok')).toContain('"command" : "ruok"');
  });

  test('to clients without a key or from another origin, and below a prefix', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString, { key: 'k3y', prefix: '/zk' });
    const { page } = site;
    const root = `http://127.0.0.1:${site.console.port}/zk`;
    await page.goto(`${root}/`);
    await page.getByLabel('Key').fill('wrong');
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByText('that is not the key of this console').waitFor();
    await page.goto('about:blank');
    await page.goto(site.console.url);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'zookeeper' }).waitFor();
    // The key does not stay in the URL.
    expect(page.url()).not.toContain('k3y');

    const statusOf = async (url: string, init: RequestInit = {}): Promise<number> => (await fetch(url, init)).status;
    expect(await statusOf(`${root}/api/c/service/znode?path=/`)).toBe(401);
    expect(await statusOf(`${root}/api/c/service/login`, { method: 'POST' })).toBe(401);
    const answer = await fetch(`${root}/api/hello`);
    const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    expect(answer.headers.get('set-cookie')).toMatch(/; Path=\/zk; HttpOnly; SameSite=Strict$/);
    const { csrf } = (await answer.json()) as { csrf: string };
    const body = JSON.stringify({ key: 'k3y' });
    const json = { 'content-type': 'application/json', cookie };
    const enter = `${root}/api/enter`;
    expect(await statusOf(enter, { method: 'POST', body, headers: json })).toBe(403);
    const crossSite = { ...json, 'x-meerkat-csrf': csrf, 'sec-fetch-site': 'cross-site' };
    expect(await statusOf(enter, { method: 'POST', body, headers: crossSite })).toBe(403);
    expect(await statusOf(enter, { method: 'POST', body, headers: { ...json, 'x-meerkat-csrf': csrf } })).toBe(200);
    const policy = (await fetch(`${root}/`)).headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-");
    expect(policy).not.toContain('unsafe');
    for (const path of ['/assets/..%2findex.html', '/assets/%2e%2e/x', '/api/nothing', '/..%2f..%2fetc/passwd']) {
      expect(await statusOf(`${root}${path}`), path).toBe(404);
    }
    site.expectNoComplaints();
  });
});
