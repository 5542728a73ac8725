import { connect } from '@meerkat/client';
import { Messenger } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
await using client = await connect(SERVERS);
const bob = new Messenger(client, '/mail', 'bob');
await bob.open();

// #region send
const ann = new Messenger(client, '/mail', 'ann');
await ann.send('bob', 'the shelf is empty');
await ann.send('bob', 'never mind');
// #endregion

// #region receive
for await (const { id, sender, data, acknowledge } of bob.receive()) {
  console.log(`${sender}: ${new TextDecoder().decode(data)}`);
  remember(id); // if the work is not idempotent by itself
  await acknowledge();
  if ((await bob.backlog()) === 0) break;
}
// #endregion

await client.deleteRecursive('/mail');

/** Would write the id in the same transaction as the message's effects. */
function remember(_id: string): void {}

// Prints:
//   ann: the shelf is empty
//   ann: never mind
