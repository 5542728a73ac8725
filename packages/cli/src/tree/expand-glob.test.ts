import { type Client, connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expandGlob } from './glob.ts';
import { walkTree } from './tree-walk.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
  const paths = [
    '/app/web/config',
    '/app/mail/config',
    '/app/mail/log/config',
    '/app/[x]',
    '/app/lock-08',
    '/app/lock-10',
  ];
  for (const path of paths) await client.createParents(path);
});

afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

describe('a pattern stands for the znodes that are like it', () => {
  const expanded = (pattern: string): Promise<readonly string[]> => expandGlob(client, pattern, {});

  test('name by name', async () => {
    expect(await expanded('/app/*/config')).toEqual(['/app/mail/config', '/app/web/config']);
    expect(await expanded('/a*/{web,mail}')).toEqual(['/app/mail', '/app/web']);
    expect(await expanded('/app/lock-{08..11}')).toEqual(['/app/lock-08', '/app/lock-10']);
    expect(await expanded('/app/\\[x\\]')).toEqual(['/app/[x]']);
  });

  test('at any depth', async () => {
    expect(await expanded('/app/**/config')).toEqual(['/app/mail/config', '/app/mail/log/config', '/app/web/config']);
    expect(await expanded('/app/mail/**')).toEqual(['/app/mail/config', '/app/mail/log', '/app/mail/log/config']);
    expect(await expanded('/app/{web,mail/log}/config')).toEqual(['/app/mail/log/config', '/app/web/config']);
  });

  test('beside those that may not be read', async () => {
    await client.create('/near');
    await client.create('/near/open');
    await client.create('/near/open/config');
    const shut = { acl: [{ perms: 31, scheme: 'digest', id: 'bob:x' }] };
    await client.create('/near/shut', '', shut);
    expect(await expanded('/near/*')).toEqual(['/near/open', '/near/shut']);
    expect(await expanded('/near/*/*')).toEqual(['/near/open/config']);
    expect(await expanded('/near/**/config')).toEqual(['/near/open/config']);
    expect(await expanded('/n*/shut')).toEqual(['/near/shut']);
  });

  test('and expands to nothing without a match', async () => {
    for (const pattern of ['/app/x*', '/nowhere/*', '/nowhere/**', '/app/*/nothing', '/app/\\[y\\]']) {
      expect(await expanded(pattern), pattern).toEqual([]);
    }
  });
});

describe('a walk', () => {
  test('goes through several trees, and says what is missing and what may not be read', async () => {
    await client.create('/walk');
    await client.create('/walk/open');
    await client.create('/walk/shut', '', { acl: [{ perms: 31, scheme: 'digest', id: 'bob:x' }] });
    const reported: string[] = [];
    const walk = walkTree(client, ['/walk', '/nowhere', '/app/web'], {
      onMissing: ({ path }) => reported.push(`missing ${path}`),
      onRefused: (path, depth) => reported.push(`refused ${path} ${depth}`),
    });
    for await (const { path, depth } of walk) reported.push(`${path} ${depth}`);
    expect(reported).toEqual([
      '/walk 0',
      '/walk/open 1',
      'refused /walk/shut 1',
      'missing /nowhere',
      '/app/web 0',
      '/app/web/config 1',
    ]);
    await expect(walkTree(client, '/walk/shut').next()).rejects.toMatchObject({ code: 'NOAUTH' });
  });

  test('visits no more children of each than it is told', async () => {
    const paths: string[] = [];
    for await (const { path } of walkTree(client, '/app', { childrenMax: 1, depthMax: 1 })) paths.push(path);
    expect(paths).toEqual(['/app', '/app/[x]']);
  });
});
