import { connect, UnimplementedError } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { OldServer } from './old-server.ts';

test('a server made old refuses a newer request behind the replies to earlier ones', async () => {
  await using server = await TestServer.start();
  await using old = await OldServer.start(Number(server.connectString.split(':')[1]));
  await using client = await connect(`127.0.0.1:${old.port}`);
  const value = client.get('/zookeeper');
  const created = client.create('/new', 'x');
  await expect(created).rejects.toThrow(UnimplementedError);
  expect((await value).stat.numChildren).toBe(2);
});
