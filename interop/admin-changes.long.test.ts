import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Client, connect } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { Ensemble } from './ensemble/ensemble.ts';
import { describeWith } from './harness/peers.ts';
import { ServerProcess, SUPER_CREDENTIALS } from './harness/server-process.ts';

/* Changes through the admin port: authorization, HTTP methods, audit log, and answers of a server without a quorum. */

const ANN = 'digest ann:secret';
const SUPER = `digest ${SUPER_CREDENTIALS}`;

interface Question {
  readonly method?: string;
  readonly authorization?: string | null;
  readonly body?: Uint8Array<ArrayBuffer>;
}

interface Reply {
  readonly status: number;
  readonly allow: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(server: ServerProcess, command: string, question: Question = {}): Promise<Reply> {
  const { method = 'POST', authorization = ANN, body = null } = question;
  const answer = await fetch(`http://127.0.0.1:${server.adminPort}/commands/${command}`, {
    method,
    body,
    headers: authorization === null ? {} : { authorization },
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type') === 'application/json';
  return { status: answer.status, allow: answer.headers.get('allow'), body: isJson ? JSON.parse(text) : { text } };
}

function idOf(client: Client): string {
  return `0x${BigInt.asUintN(64, client.session?.id ?? 0n).toString(16)}`;
}

/** Makes each change as ann, and without authorization, which is refused. @returns audit log lines, without times */
async function changeAll(server: ServerProcess): Promise<readonly (readonly [string, string, string])[]> {
  const client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 60_000 });
  const session = idOf(client);
  const snapshot = await fetch(`http://127.0.0.1:${server.adminPort}/commands/snapshot?streaming=true`, {
    headers: { authorization: ANN },
  });
  const bytes = new Uint8Array(await snapshot.arrayBuffer());
  const done: [string, string, string][] = [];
  const change = async (
    operation: string,
    command: string,
    status: number,
    question: Question = {},
  ): Promise<Reply> => {
    const reply = await ask(server, command, question);
    expect(reply.status, `${command} ${JSON.stringify(reply.body)}`).toBe(status);
    done.push([operation, question.authorization === null ? '' : 'ann', status === 200 ? 'success' : 'failure']);
    return reply;
  };
  const orders = ['drain', 'undrain', 'shed?count=1', 'restore', `end_session?session=${session}`];
  for (const order of orders) {
    const [name = ''] = order.split('?');
    await change(name === 'end_session' ? 'endSession' : name, order, 401, { authorization: null });
  }
  expect((await change('shed', 'shed?count=1', 200)).body).toMatchObject({ closed: 1, error: null });
  await change('shed', 'shed?count=some', 400);
  await change('drain', 'drain?per_second=0', 400);
  expect((await change('drain', 'drain?per_second=10', 200)).body).toMatchObject({ is_draining: true, error: null });
  expect((await ask(server, 'drain', { method: 'GET' })).body).toMatchObject({ is_draining: true, command: 'drain' });
  await change('undrain', 'undrain', 200);
  await change('endSession', `end_session?session=${session}`, 200);
  await change('endSession', `end_session?session=${session}`, 404);
  await change('endSession', 'end_session', 400);
  await change('restore', 'restore', 400);
  await change('restore', 'restore', 500, { body: bytes.slice(0, -1) });
  await change('restore', 'restore', 200, { body: bytes });
  // GET, as used by older commands, changes nothing and is not audited.
  for (const command of ['drain?per_second=10', 'undrain', 'shed?count=1', 'restore']) {
    expect(await ask(server, command, { method: 'GET' }), command).toMatchObject({ status: 405, allow: 'POST' });
  }
  expect(await ask(server, 'drain', { method: 'GET' })).toMatchObject({ status: 200, body: { is_draining: false } });
  await client.close({ timeoutMs: 1000 }).catch(() => {});
  return done;
}

const OPERATIONS = /\boperation=(?:drain|undrain|shed|restore|endSession)\t/;
const NO_LIMIT = { 'audit.enable': true, 'admin.rateLimiterIntervalInMS': 0 };

test('each change has a line in the audit log, with the user and the result', async () => {
  await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config: NO_LIMIT });
  onTestFailed(() => console.log(server.output));
  const done = await changeAll(server);
  const lines = (): string[] => server.output.split('\n').filter((line) => OPERATIONS.test(line));
  await expect.poll(() => lines().length).toBeGreaterThanOrEqual(done.length);
  const audited = lines().map((line) => line.replace(/^[-\d]+ [\d:.]+ (?:INFO |ERROR) (?:session=0x[0-9a-f]+\t)?/, ''));
  expect(audited).toEqual(
    done.map(([operation, user, result]) => {
      return `${user === '' ? '' : `user=${user}\t`}ip=127.0.0.1\toperation=${operation}\tresult=${result}`;
    }),
  );
  // The server's log reports it too.
  for (const what of ['10 a second, and no sessions are taken', 'sessions are taken again', 'clients sent away: 1']) {
    expect(server.output).toMatch(new RegExp(`${what}.*; the admin command of ann at 127\\.0\\.0\\.1\n`));
  }
});

test('in JSON format each change is an object', async () => {
  const config = { ...NO_LIMIT, 'audit.format': 'json', 'audit.file': 'audit.json' };
  await using server = await ServerProcess.start('meerkat', { hasAdmin: true, config });
  onTestFailed(() => console.log(server.output));
  const done = await changeAll(server);
  const path = join(server.directory, 'audit.json');
  const objects = (): Record<string, string>[] => {
    const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
    const all = text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as Record<string, string>);
    return all.filter(({ operation = '' }) => OPERATIONS.test(`operation=${operation}\t`));
  };
  await expect.poll(() => objects().length).toBeGreaterThanOrEqual(done.length);
  expect(objects().map(({ operation, user = '', result, ip }) => [operation, user, result, ip])).toEqual(
    done.map((line) => [...line, '127.0.0.1']),
  );
});

test('every command that needs authorization refuses requests without it, with and without a quorum', async () => {
  const place = { kind: 'meerkat', hasAdmin: true } as const;
  const ensemble = await Ensemble.start([place, place, place]);
  onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
  try {
    const [{ server }, ...others] = ensemble.members as [(typeof ensemble.members)[0], ...typeof ensemble.members];
    const { paths } = JSON.parse(await server.askAdmin('/openapi.json')) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly security?: unknown }>>>>;
    };
    const guarded = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { security }]) => security !== undefined)
        .map(([method]) => `${method.toUpperCase()} ${path.replace('/commands/', '')}`),
    );
    expect(guarded.toSorted()).toEqual([
      'GET archive',
      'GET drain',
      'GET end_session',
      'GET snapshot',
      'POST drain',
      'POST end_session',
      'POST restore',
      'POST shed',
      'POST undrain',
    ]);
    const codesOf = async (authorization: string | null): Promise<Readonly<Record<string, string>>> => {
      const codes: Record<string, string> = {};
      for (const one of guarded) {
        const [method = '', command = ''] = one.split(' ');
        const arguments_ = ARGUMENTS[command] ?? '';
        const reply = await ask(server, command + arguments_, { method, authorization });
        codes[one] = `${reply.status} ${String(reply.body['error'] ?? '')}`.trim();
      }
      return codes;
    };
    const none = Object.fromEntries(guarded.map((one) => [one, '401 Auth info is missing for the command']));
    const unknown = Object.fromEntries(guarded.map((one) => [one, '401 Not authenticated']));
    expect(await codesOf(null)).toEqual(none);
    expect(await codesOf('sasl ann')).toEqual(unknown);
    for (const other of others) await other.server.kill();
    await expect
      .poll(() => server.askAdmin('/commands/srvr'), { timeout: 60_000 })
      .toContain('not currently serving requests');
    expect(await codesOf(null)).toEqual(none);
    expect(await codesOf('sasl ann')).toEqual(unknown);
    // With credentials the error is reported; permissions cannot be checked, because no server has the tree.
    const notServing = '200 This ZooKeeper instance is not currently serving requests';
    const noQuorum = expect.stringMatching(/^503 nothing was asked for: this server has no quorum/) as unknown;
    const noTree = expect.stringMatching(/^503 this server has no quorum, .*; a super user may$/) as unknown;
    const ofSession = { 'GET end_session': noQuorum, 'POST end_session': noQuorum };
    const ofZooKeeper = { 'GET archive': notServing, 'GET snapshot': notServing, 'POST restore': notServing };
    expect(await codesOf(ANN)).toEqual({
      ...ofZooKeeper,
      ...ofSession,
      'GET drain': noTree,
      'POST drain': noTree,
      'POST shed': noTree,
      'POST undrain': noTree,
    });
    // Draining needs no quorum.
    expect(await codesOf(SUPER)).toEqual({
      ...ofZooKeeper,
      ...ofSession,
      'GET drain': '200',
      'POST drain': '200',
      'POST shed': '200',
      'POST undrain': '200',
    });
  } finally {
    await ensemble.dispose();
  }
});

const ARGUMENTS: Readonly<Record<string, string>> = { shed: '?count=1', end_session: '?session=0x1' };

describeWith(['packagingTools'], 'the OpenAPI document', () => {
  test('conforms to the schema of its version', async () => {
    const require = createRequire(fileURLToPath(new URL('../deploy/tools/package.json', import.meta.url)));
    const file = require.resolve('@seriousme/openapi-schema-validator');
    const { Validator } = (await import(pathToFileURL(file).href)) as {
      readonly Validator: new () => { validate(document: object): Promise<{ readonly valid: boolean }> };
    };
    await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
    const document = JSON.parse(await server.askAdmin('/openapi.json')) as { readonly paths: object };
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    const { '/commands/shed': _, ...paths } = document.paths as Record<string, object>;
    const shed = { post: { responses: 'none' } };
    expect(await new Validator().validate({ ...document, paths: { ...paths, '/commands/shed': shed } })).toMatchObject({
      valid: false,
    });
  });
});

test('the command drains an older server, which only supports GET', async () => {
  await using server = await ServerProcess.start('meerkat', { hasAdmin: true });
  const asked: string[] = [];
  // A proxy in front of a current server that answers like an older one.
  const older = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push(`${method} ${url}`);
    if (method !== 'GET') {
      const [, name = ''] = /^\/commands\/(\w+)/.exec(url) ?? [];
      response.writeHead(405, { allow: 'GET, HEAD', 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${name} is asked for with GET\n`);
      return;
    }
    void ask(server, url.replace('/commands/', ''), { authorization: headers.authorization ?? null }).then((reply) => {
      response.writeHead(reply.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(reply.body));
    });
  }).listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => older.once('listening', resolve));
    const address = older.address();
    const port = typeof address === 'object' && address !== null ? String(address.port) : '';
    const drain = ['drain', '--server', `127.0.0.1:${server.port}`, '--http-port', port];
    const run = (...more: string[]) => new RunningCommand([...drain, ...more], {}, false).ended;
    const drained = await run();
    expect(drained, drained.stderr).toMatchObject({ exitCode: 0 });
    expect(asked).toEqual(['POST /commands/drain?per_second=500', 'GET /commands/drain?per_second=500']);
    expect((await ask(server, 'drain', { method: 'GET' })).body).toMatchObject({ is_draining: true });
    const undone = await run('--undo');
    expect(undone, undone.stderr).toMatchObject({ exitCode: 0 });
    expect((await ask(server, 'drain', { method: 'GET' })).body).toMatchObject({ is_draining: false });
  } finally {
    older.close();
  }
});
