import { connect, text } from '@meerkat/client';
import { PriorityLock } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using ann = await connect(server.connectString);
await using bob = await connect(server.connectString);
await using eve = await connect(server.connectString);
await ann.create('/printed', '');

// #region code
const printer = new PriorityLock(ann, '/locks/printer', { data: 'ann' });
const lock = await printer.acquire({ priority: 10 });
// The smallest priority is next, not the first to come.
// #endregion
const waiting = [print(bob, 'bob', 10), print(eve, 'eve', -5)];
let contenders = await printer.contenders();
while (contenders.length < 3) contenders = await printer.contenders();
for (const { data, priority, isFirst } of contenders) {
  console.log(text.decode(data), priority, isFirst ? 'has it' : 'waits');
}
await lock.guarded.set('/printed', 'by ann');
await lock.release();
await Promise.all(waiting);

async function print(client: typeof ann, data: string, priority: number): Promise<void> {
  await using lock = await new PriorityLock(client, '/locks/printer', { data }).acquire({ priority });
  await lock.guarded.set('/printed', `by ${data}`);
  console.log(`${data} prints`);
}

console.log((await ann.get('/printed', { codec: text })).data);

// Prints:
//   ann 10 has it
//   eve -5 waits
//   bob 10 waits
//   eve prints
//   bob prints
//   by bob
