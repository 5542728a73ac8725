// #region connect
import { connect, text } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

await client.create('/greeting', 'hello');
const { data, stat } = await client.get('/greeting', { codec: text });
console.log(`${data}, version ${stat.version}`);
// #endregion

const changes = client.watch('/greeting');
await changes.ready;
await client.set('/greeting', 'good morning', { version: stat.version });

for await (const event of changes) {
  console.log(event.type);
  if (event.type === 'changed') break; // leaving the loop removes the watch
}

await client.delete('/greeting');

// Prints:
//   hello, version 0
//   changed
