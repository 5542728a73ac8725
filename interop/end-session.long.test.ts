import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acl, type Client, connect } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { Terminal } from './cli/shell/terminal.ts';
import { Ensemble, type Place } from './ensemble/ensemble.ts';
import { writeCertificates } from './harness/admin-certificates.ts';
import { MEERKAT_COMMAND } from './harness/meerkat-command.ts';
import { describeWith } from './harness/peers.ts';
import { ServerProcess, SUPER_CREDENTIALS } from './harness/server-process.ts';

/* An administrator ends sessions of other clients: at any server of an ensemble, by HTTP and with the command. */

const OURS: Place = { kind: 'meerkat', hasAdmin: true };
const CLIENT = { sessionTimeoutMs: 60_000 };
const run = (...args: string[]) => new RunningCommand(args, {}, false).ended;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(server: ServerProcess, session: string, method = 'POST', authorization = 'ip'): Promise<Answer> {
  const url = `http://127.0.0.1:${server.adminPort}/commands/end_session?session=${session}`;
  const answer = await fetch(url, { method, headers: authorization === '' ? {} : { authorization } });
  return { status: answer.status, body: (await answer.json()) as Answer['body'] };
}

function idOf(client: Client): string {
  return `0x${BigInt.asUintN(64, client.session?.id ?? 0n).toString(16)}`;
}

/** Expects that the client is notified and starts a new session. */
async function expectEnded(client: Client, session: string): Promise<void> {
  await expect.poll(() => idOf(client), { timeout: 60_000 }).not.toBe(session);
  await client.close({ timeoutMs: 1000 }).catch(() => {});
}

test('any server can end a session, which deletes its ephemerals', async () => {
  const ensemble = await Ensemble.start([OURS, OURS, OURS, { ...OURS, isObserver: true }], { 'audit.enable': true });
  onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
  try {
    const watcher = await connect(ensemble.connectString);
    for (const { id, server } of ensemble.members) {
      // The client is connected to the next server.
      const next = ensemble.members[id % ensemble.members.length]!.server;
      const client = await connect(`127.0.0.1:${next.port}`, CLIENT);
      const session = idOf(client);
      await client.create(`/held-${id}`, '', { mode: 'ephemeral' });
      const gone = watcher.watch(`/held-${id}`);
      await gone.ready;
      await expect.poll(async () => (await ask(server, session, 'GET')).body['ephemerals']).toBe(1);
      const found = { session, ephemerals: 1, ephemeral_paths: [`/held-${id}`], error: null };
      expect(await ask(server, session, 'GET')).toMatchObject({ status: 200, body: { ...found, is_ended: false } });
      expect(await ask(server, session)).toMatchObject({ status: 200, body: { ...found, is_ended: true } });
      // A watcher whose server lagged behind gets the creation first.
      await expect.poll(() => gone.take()?.type, { timeout: 60_000 }).toBe('deleted');
      await gone.close();
      await expectEnded(client, session);
      expect(await ask(server, session)).toMatchObject({ status: 404 });
      await expect
        .poll(() => server.output)
        .toContain(`session=${session}\tuser=127.0.0.1\tip=127.0.0.1\toperation=endSession\tresult=success`);
      expect(server.output).toContain(`session ${session} was ended by the admin command of 127.0.0.1`);
      // The session did not expire, and no server logs that.
      expect(ensemble.logs).not.toContain(`session ${session} has expired`);
    }
    await watcher.close();
  } finally {
    await ensemble.dispose();
  }
});

test('a request without all permissions on the root, by GET or with an invalid id ends no session', async () => {
  await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
  const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
  const session = idOf(client);
  await client.setAcl('/', [acl.digest('ann', 'secret'), acl.world('r')]);
  expect(await ask(server, session, 'POST', '')).toMatchObject({ status: 401 });
  expect(await ask(server, session, 'GET', '')).toMatchObject({ status: 401 });
  expect(await ask(server, session, 'POST', 'ip')).toMatchObject({ status: 403 });
  expect(await ask(server, session, 'GET', 'digest ann:wrong')).toMatchObject({ status: 403 });
  expect(await ask(server, '0xnone', 'POST', 'digest ann:secret')).toMatchObject({ status: 400 });
  expect(await ask(server, '0x1', 'POST', 'digest ann:secret')).toMatchObject({ status: 404 });
  expect(await ask(server, session, 'GET', `digest ${SUPER_CREDENTIALS}`)).toMatchObject({ status: 200 });
  await client.get('/');
  expect(await ask(server, session, 'POST', 'digest ann:secret')).toMatchObject({ status: 200 });
  await expectEnded(client, session);
});

test('a server without a quorum refuses; a leader that loses its quorum reports an unknown outcome', async () => {
  // Long enough to send the request before the leader notices.
  const ensemble = await Ensemble.start([OURS, OURS, OURS], { syncLimit: 20 });
  onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
  try {
    const leader = await ensemble.leader();
    const others = ensemble.members.filter((member) => member !== leader);
    const client = await connect(ensemble.connectString, CLIENT);
    const session = idOf(client);
    for (const { server } of others) await server.pause();
    // It keeps leading until it notices, but nothing is committed.
    const asked = await ask(leader.server, session);
    expect([asked.status, asked.body['error']]).toEqual([504, expect.stringContaining('it may end yet')]);
    await expect.poll(async () => (await ask(leader.server, session)).status, { timeout: 60_000 }).toBe(503);
    expect((await ask(leader.server, session)).body['error']).toContain('this server has no quorum');
    const place = `127.0.0.1:${leader.server.port}`;
    const command = ['sessions', 'end', session, '--server', place, '--http-port', `${leader.server.adminPort}`];
    const ended = await run(...command);
    expect([ended.exitCode, ended.stderr]).toEqual([24, expect.stringContaining(`session ${session} was not ended`)]);
    for (const { server } of others) server.resume();
    await client.close({ timeoutMs: 1000 }).catch(() => {});
  } finally {
    await ensemble.dispose();
  }
});

test('a local session ends at its own server, which the command finds', async () => {
  const ensemble = await Ensemble.start([OURS, OURS, OURS], { localSessionsEnabled: true });
  try {
    const [one, two, three] = ensemble.members.map(({ server }) => server);
    const client = await connect(`127.0.0.1:${three!.port}`, CLIENT);
    const session = idOf(client);
    expect(await ask(one!, session)).toMatchObject({ status: 404 });
    const servers = [one, two, three].map((server) => `127.0.0.1:${server?.port}`).join(',');
    const ports = [one, two, three].map((server) => server?.adminPort).join(',');
    const command = ['sessions', 'end', session, '--server', servers, '--http-port', ports];
    const ended = await run(...command, '-o', 'json');
    expect(ended, ended.stderr).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(ended.stdout)).toMatchObject({ session, server: `127.0.0.1:${three!.port}`, ended: true });
    await expectEnded(client, session);
    const again = await run(...command);
    expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining(`there is no session ${session}`)]);
  } finally {
    await ensemble.dispose();
  }
});

test('the command shows what would be deleted, and requires credentials and an admin port', async () => {
  await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
  const place = ['--server', `127.0.0.1:${server.port}`];
  const port = ['--http-port', `${server.adminPort}`];
  const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
  const session = idOf(client);
  for (let i = 0; i < 7; i++) await client.create(`/e-${i}`, '', { mode: 'ephemeral' });
  await client.get('/e-1', { watch: true });
  const planned = await run('sessions', 'end', session, '-n', ...place, ...port, '-o', 'json');
  expect(JSON.parse(planned.stdout)).toMatchObject({ session, ephemerals: 7, watches: 1, ended: false });
  expect(planned.stderr).toMatch(/it holds 7 ephemeral znodes \(\/e-\d(, \/e-\d){4} and 2 more\)/);
  await client.setAcl('/', [acl.digest('ann', 'secret'), acl.world('r')]);
  const refused = await run('sessions', 'end', session, ...place, ...port);
  expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('--auth digest:user:password')]);
  const nowhere = await run('sessions', 'end', session, ...place, '--http-port', '1');
  expect([nowhere.exitCode, nowhere.stderr]).toEqual([3, expect.stringContaining('nothing listens there')]);
  const wrong = await run('sessions', 'end', 'all', ...place, ...port);
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('found "all"')]);
  const strayed = await run('sessions', '--yes', ...place);
  expect([strayed.exitCode, strayed.stderr]).toEqual([2, expect.stringContaining('belong to "sessions end"')]);
  await client.get('/');
  const ended = await run('sessions', 'end', session, '--yes', '--auth', 'digest:ann:secret', ...place, ...port);
  expect(ended, ended.stderr).toMatchObject({ exitCode: 0 });
  await expectEnded(client, session);
});

test('with TLS ending sessions requires a certificate', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'end-session-tls-'));
  try {
    const { config, ca, root, ann } = writeCertificates(directory);
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config });
    const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
    const session = idOf(client);
    await client.setAcl('/', [acl.x509('CN=root'), acl.world('r')]);
    const end = ['sessions', 'end', session, '--server', `127.0.0.1:${server.port}`];
    const port = ['--http-port', `${server.adminPort}`, '--tls-ca', ca];
    const refused = await run(...end, ...port, '--https', '--tls-cert', ann);
    expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('Not authorized')]);
    const shy = await run(...end, ...port, '--https');
    expect([shy.exitCode, shy.stderr]).toEqual([3, expect.stringContaining('--tls-cert')]);
    await client.get('/');
    const ended = await run(...end, ...port, '--https', '--tls-cert', root);
    expect(ended, ended.stderr).toMatchObject({ exitCode: 0 });
    await expectEnded(client, session);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

describeWith(['tmux'], 'on a terminal', () => {
  test('the command shows the client and what its session holds, and ends it only after confirmation', async () => {
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
    const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
    const session = idOf(client);
    await client.create('/held', '', { mode: 'ephemeral' });
    await client.get('/held', { watch: true });
    const place = ['--server', `127.0.0.1:${server.port}`, '--http-port', `${server.adminPort}`];
    const words = [...MEERKAT_COMMAND, 'sessions', 'end', session, ...place];
    const start = async (answer: string): Promise<AsyncDisposable & { ended(): Promise<string> }> => {
      const terminal = await Terminal.start(words, { HOME: '/nonexistent' });
      const question = await terminal.until('a question', (screen) => screen.includes('[y/N]'));
      expect(question.replaceAll(/\s+/g, ' ')).toMatch(
        new RegExp(
          `end session ${session} of 127\\.0\\.0\\.1:\\d+ at 127\\.0\\.0\\.1:${server.port}, with 1 ephemeral znode \\(/held\\) and 1 watched paths\\?`,
        ),
      );
      await terminal.enter(answer);
      return {
        ended: () => terminal.until('its end', (screen) => screen.includes('ended with')),
        [Symbol.asyncDispose]: () => terminal[Symbol.asyncDispose](),
      };
    };
    await using refused = await start('n');
    expect(await refused.ended()).toMatch(/nothing was ended\nended with 1$/);
    await client.get('/held');
    await using agreed = await start('y');
    expect(await agreed.ended()).toMatch(/ended with 0$/);
    await expectEnded(client, session);
  });
});

describeWith(['apache'], "with Apache's servers", () => {
  test('our server that follows an Apache leader ends sessions at both', async () => {
    const ensemble = await Ensemble.start([{ kind: 'apache' }, { kind: 'apache' }, OURS]);
    onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
    try {
      await ensemble.leaderOfKind('apache');
      const ours = ensemble.members[2]!.server;
      for (const { server } of ensemble.members) {
        const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
        const session = idOf(client);
        await client.create('/held', '', { mode: 'ephemeral' });
        await expect.poll(async () => (await ask(ours, session, 'GET')).body['ephemerals']).toBe(1);
        expect(await ask(ours, session)).toMatchObject({ status: 200, body: { is_ended: true } });
        await expectEnded(client, session);
      }
    } finally {
      await ensemble.dispose();
    }
  });

  test('the command reports that Apache servers do not support it', async () => {
    await using server = await ServerProcess.start('apache', { hasAdmin: true });
    const client = await connect(`127.0.0.1:${server.port}`, CLIENT);
    const place = ['--server', `127.0.0.1:${server.port}`, '--http-port', `${server.adminPort}`];
    const refused = await run('sessions', 'end', idOf(client), '--yes', ...place);
    expect([refused.exitCode, refused.stderr]).toEqual([23, expect.stringContaining("Apache's servers")]);
    await client.get('/');
    await client.close();
  });
});
