// #region code
import { connect, text } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';

await using client = await connect(process.env['ZOOKEEPER'] ?? '127.0.0.1:2181');
await client.create('/next-order', '7');
{
  await using lock = await new Mutex(client, '/locks/orders').acquire({ timeoutMs: 10_000 });
  const { data } = await client.get('/next-order', { codec: text });
  // Refused by the service if the lock is lost by then.
  await lock.guarded.set('/next-order', `${Number(data) + 1}`);
} // the lock is released here
console.log((await client.get('/next-order', { codec: text })).data);
await client.delete('/next-order');
// #endregion

await client.deleteRecursive('/locks');

// Prints:
//   8
