import { connect, text } from '@meerkat/client';
import { MultiLock, Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using client = await connect(server.connectString);
for (const name of ['ann', 'bob']) await client.create(`/${name}`, '50');

// #region code
const both = new MultiLock(client, ['/locks/ann', '/locks/bob']);
{
  await using lock = await both.acquire({ timeoutMs: 10_000 });
  // All of it happens, if both locks are held then, or nothing.
  await lock.guarded.commit((transaction) => transaction.set('/ann', '20').set('/bob', '80'));
  // #endregion
  console.log(`bob's lock is free: ${(await new Mutex(client, '/locks/bob').tryAcquire()) !== null}`);
  // #region code
}
// #endregion

for (const name of ['ann', 'bob']) console.log(name, (await client.get(`/${name}`, { codec: text })).data);

// Prints:
//   bob's lock is free: false
//   ann 20
//   bob 80
