import { type Client, connect, text } from '@meerkat/client';
import { Condition, Mutex } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const consumer = await connect(SERVERS);
const producer = await connect(SERVERS);
await producer.create('/stock', '0');

async function readStock(client: Client): Promise<number> {
  return Number((await client.get('/stock', { codec: text })).data);
}

// #region wait
async function takeOne(client: Client): Promise<void> {
  const mutex = new Mutex(client, '/stock-lock');
  const changed = new Condition(client, '/stock-changed', mutex);
  let lock = await mutex.acquire();
  try {
    // In a loop: another client may have been faster, and a wait may end without a notification.
    while ((await readStock(client)) === 0) lock = await changed.wait(lock);
    await lock.guarded.set('/stock', `${(await readStock(client)) - 1}`);
  } finally {
    await lock.release();
  }
}
// #endregion

async function putOne(client: Client): Promise<void> {
  const mutex = new Mutex(client, '/stock-lock');
  await using lock = await mutex.acquire();
  await lock.guarded.set('/stock', `${(await readStock(client)) + 1}`);
  await new Condition(client, '/stock-changed', mutex).notify(lock);
}

const taking = takeOne(consumer).then(() => console.log('taken'));
await putOne(producer);
await taking;
console.log(`left: ${await readStock(producer)}`);

await consumer.close();
const { children } = await producer.children('/');
for (const name of children) if (name.startsWith('stock')) await producer.deleteRecursive(`/${name}`);
await producer.close();

// Prints:
//   taken
//   left: 0
