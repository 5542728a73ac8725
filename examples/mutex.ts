import { connect, text } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using ann = await connect(server.connectString);
await using bob = await connect(server.connectString);
await ann.create('/next-order', '7');

// #region code
const mutex = new Mutex(ann, '/locks/orders', { data: 'ann' });
{
  await using lock = await mutex.acquire({ timeoutMs: 10_000 });
  const { data } = await ann.get('/next-order', { codec: text });
  // Refused by the service if the lock is lost by then.
  await lock.guarded.set('/next-order', `${Number(data) + 1}`);
}
// #endregion

const lock = await mutex.acquire();
const waiting = new Mutex(bob, '/locks/orders', { data: 'bob' }).acquire();
let contenders = await mutex.contenders();
while (contenders.length < 2) contenders = await mutex.contenders();
for (const { data, isFirst } of contenders) console.log(text.decode(data), isFirst ? 'has it' : 'waits');

lock.revocation.addEventListener('abort', () => void lock.release());
await new Mutex(bob, '/locks/orders').revoke();
await using mine = await waiting;
console.log(`bob has it now: ${mine.isHeld}; ann: ${lock.isHeld}`);

const { data } = await bob.get('/next-order', { codec: text });
console.log(`the next order is ${data}`);

// Prints:
//   ann has it
//   bob waits
//   bob has it now: true; ann: false
//   the next order is 8
