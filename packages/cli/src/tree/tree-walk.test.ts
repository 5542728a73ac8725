import { type Client, connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Visited, type WalkOptions, walkTree } from './tree-walk.ts';

describe('a walk through a tree', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await TestServer.start();
    client = await connect(server.connectString);
    for (const path of ['/t', '/t/b', '/t/b/2', '/t/b/1', '/t/a', '/t/a/x', '/t/a/x/y'])
      await client.create(path, path);
    await client.create('/wide');
    await Promise.all(Array.from({ length: 500 }, (_, i) => client.create(`/wide/${String(i).padStart(3, '0')}`)));
  });

  afterAll(async () => {
    await client.close();
    await server[Symbol.asyncDispose]();
  });

  async function walked(root: string, options: WalkOptions = {}): Promise<Visited[]> {
    return all(walkTree(client, root, options));
  }

  test('visits parents first and children by name', async () => {
    const visited = await walked('/t');
    expect(visited.map(({ path, depth }) => `${depth} ${path}`)).toEqual([
      '0 /t',
      '1 /t/a',
      '2 /t/a/x',
      '3 /t/a/x/y',
      '1 /t/b',
      '2 /t/b/1',
      '2 /t/b/2',
    ]);
    expect(visited.every(({ data }) => data === null)).toBe(true);
  });

  test('reads the data, goes so deep, and leaves out what it is told', async () => {
    const shallow = await walked('/t', { withData: true, depthMax: 1 });
    expect(shallow.map(({ data }) => new TextDecoder().decode(data!))).toEqual(['/t', '/t/a', '/t/b']);
    const partly = await walked('/t', { isLeftOut: (path) => path === '/t/a' });
    expect(partly.map(({ path }) => path)).toEqual(['/t', '/t/b', '/t/b/1', '/t/b/2']);
  });

  test('visits more znodes than it asks for at once', async () => {
    const visited = await walked('/wide');
    expect(visited).toHaveLength(501);
    expect(visited.at(-1)?.path).toBe('/wide/499');
  });

  test('leaves out what goes meanwhile, and says that the first is missing', async () => {
    await client.create('/going');
    await client.create('/going/a');
    await client.create('/going/b');
    const seen: string[] = [];
    for await (const { path } of walkTree(client, '/going')) {
      seen.push(path);
      if (path === '/going') await client.delete('/going/a');
    }
    expect(seen).toEqual(['/going', '/going/b']);
    await expect(walked('/nowhere')).rejects.toThrow(expect.objectContaining({ code: 'NONODE', path: '/nowhere' }));
  });

  test('can be left, and aborted', async () => {
    for await (const { path } of walkTree(client, '/wide')) if (path === '/wide/003') break;
    const controller = new AbortController();
    const walk = walkTree(client, '/wide', { signal: controller.signal });
    await walk.next();
    controller.abort();
    await expect(all(walk)).rejects.toThrow(expect.objectContaining({ code: 'ABORTED' }));
  });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
