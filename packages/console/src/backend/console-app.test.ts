import type { LightMyRequestResponse } from 'fastify';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeConsoleApp } from './console-app.ts';
import type { ConsoleOptions } from './options.ts';

const KEY = 'a-key-of-the-address';

/** With a service that none of these tests contacts. */
function startApp(options: Partial<ConsoleOptions> = {}) {
  const cluster = { name: 'service', connection: { servers: '127.0.0.1:1' }, servers: [], hasOwnLogin: false };
  const app = makeConsoleApp({ clusters: [cluster], version: '0', key: KEY, isWritable: true, ...options });
  onTestFinished(() => app.close());
  return app;
}

interface Entered {
  readonly cookie: string;
  readonly csrf: string;
}

async function sayHello(app: ReturnType<typeof startApp>, prefix = ''): Promise<Entered> {
  const answer = await app.inject(`${prefix}/api/hello`);
  return { cookie: cookieOf(answer)!, csrf: answer.json().csrf };
}

function cookieOf(answer: LightMyRequestResponse): string | null {
  return answer.headers['set-cookie']?.toString().split(';')[0] ?? null;
}

function post(app: ReturnType<typeof startApp>, url: string, payload: object, entered: Partial<Entered> = {}) {
  const { cookie, csrf } = entered;
  const headers = {
    ...(cookie === undefined ? {} : { cookie }),
    ...(csrf === undefined ? {} : { 'x-meerkat-csrf': csrf }),
  };
  return app.inject({ method: 'POST', url, payload, headers });
}

describe('the session of a browser', () => {
  test('gets another cookie once the key was sent: a cookie planted before is worthless', async () => {
    const app = startApp();
    const planted = await sayHello(app);
    const entered = await post(app, '/api/enter', { key: KEY }, planted);
    expect(entered.json().isAdmitted).toBe(true);
    const cookie = cookieOf(entered);
    expect(cookie).not.toBe(null);
    expect(cookie).not.toBe(planted.cookie);
    const attacker = await app.inject({ url: '/api/hello', headers: { cookie: planted.cookie } });
    expect(attacker.json().isAdmitted).toBe(false);
    const browser = await app.inject({ url: '/api/hello', headers: { cookie: cookie! } });
    expect(browser.json()).toMatchObject({ isAdmitted: true, csrf: planted.csrf });
  });

  test('is kept when hundreds of others start without the key', async () => {
    const app = startApp();
    const first = await sayHello(app);
    const cookie = cookieOf(await post(app, '/api/enter', { key: KEY }, first))!;
    for (let i = 0; i < 300; i++) await app.inject('/api/hello');
    const again = await app.inject({ url: '/api/hello', headers: { cookie } });
    expect(again.json().isAdmitted).toBe(true);
  });

  test('has a cookie named by its port: browsers do not distinguish ports', async () => {
    const app = startApp();
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as { port: number };
    const answer = await fetch(`http://127.0.0.1:${port}/api/hello`);
    expect(answer.headers.get('set-cookie')).toMatch(
      new RegExp(`^meerkat-console-${port}=.*; HttpOnly; SameSite=Strict$`),
    );
  });
});

describe('a request', () => {
  test('without the token of the page, or from another site, is refused', async () => {
    const app = startApp();
    const entered = await sayHello(app);
    expect((await post(app, '/api/enter', { key: KEY }, { cookie: entered.cookie })).json().code).toBe('no-csrf');
    const headers = { cookie: entered.cookie, 'x-meerkat-csrf': entered.csrf, 'sec-fetch-site': 'same-site' };
    const foreign = await app.inject({ method: 'POST', url: '/api/enter', payload: { key: KEY }, headers });
    expect(foreign.json().code).toBe('cross-site');
  });

  test('with an unknown host name is refused', async () => {
    const answer = await startApp().inject({ url: '/api/hello', headers: { host: 'attacker.example' } });
    expect(answer.statusCode).toBe(421);
    expect(answer.headers['set-cookie']).toBe(undefined);
  });

  test('with a large body is refused before the body is read, unless it may write', async () => {
    const app = startApp();
    const data = 'A'.repeat(1 << 20);
    expect((await post(app, '/api/c/service/set', { path: '/', data })).json().code).toBe('no-session');
    expect((await post(app, '/api/enter', { key: data }, await sayHello(app))).statusCode).toBe(413);
  });
});

test('every route except the page, its files and hello requires a session', async () => {
  const app = startApp();
  const routes = await routesOf(app);
  expect(routes.length).toBeGreaterThan(20);
  for (const { method, url } of routes) {
    if (['/', '/assets/:file', '/api/hello'].includes(url)) continue;
    const target = url.replace(':cluster', 'service').replace(':stream', 'x');
    const answer = method === 'POST' ? await post(app, target, {}) : await app.inject(target);
    expect([url, answer.statusCode]).toEqual([url, 401]);
  }
});

test('a read-only console writes by no route', async () => {
  const app = startApp({ key: null, isWritable: false });
  const entered = await sayHello(app);
  // A plan of member changes changes nothing.
  const harmless = /enter|login|logout|subscribe|members\/plan/;
  const changes = (await routesOf(app)).filter(({ method, url }) => method === 'POST' && !harmless.test(url));
  expect(changes.map(({ url }) => url.split('/').at(-1)).sort()).toEqual(
    ['acl', 'copy', 'create', 'delete', 'import', 'move', 'session-end', 'set', 'step', 'undo'].sort(),
  );
  for (const { url } of changes) {
    const { code } = (await post(app, url.replace(':cluster', 'service'), {}, entered)).json();
    expect([url, code]).toEqual([url, 'read-only']);
  }
});

/** Parsed from fastify's list of routes. */
async function routesOf(app: ReturnType<typeof startApp>): Promise<{ method: string; url: string }[]> {
  await app.ready();
  let at: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] = /^([│ ]*)(?:├── |└── )(\S+)(?: \((.*)\))?$/.exec(line) ?? [];
      at = [...at.slice(0, indent.length / 4), part];
      const url = at.join('');
      return methods
        .split(', ')
        .filter((method) => method === 'GET' || method === 'POST')
        .map((method) => ({ method, url }));
    });
}

test('below a prefix the page is at the prefix with a slash, to which its URLs are relative', async () => {
  const app = startApp({ prefix: '/zk' });
  const bare = await app.inject('/zk?a=1');
  expect([bare.statusCode, bare.headers.location]).toEqual([302, '/zk/?a=1']);
  expect((await app.inject('/api/hello')).statusCode).toBe(404);
  const answer = await app.inject('/zk/api/hello');
  expect(answer.headers['set-cookie']).toContain('; Path=/zk;');
});

test('the policy of every response allows only script files, and no framing', async () => {
  const app = startApp();
  for (const url of ['/api/hello', '/nothing', '/assets/..%2f..%2fpackage.json']) {
    const { headers } = await app.inject(url);
    expect(headers['content-security-policy']).toMatch(
      /default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/,
    );
    expect(headers['x-content-type-options']).toBe('nosniff');
  }
});
