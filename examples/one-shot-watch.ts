import { connect, text } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

// #region one-shot
await client.create('/mode', 'day');
const { data, changed } = await client.get('/mode', { codec: text, watch: true });
console.log(data);
await client.set('/mode', 'night');
const event = await changed; // the first change after the read, once
console.log(`${event.path} ${event.type}`);
// #endregion

// `exists` also watches for a creation.
const ready = await client.exists('/ready', { watch: true });
await client.create('/ready');
if (ready.stat === null) console.log(`${(await ready.changed).path} is there`);

await client.delete('/ready');
await client.delete('/mode');

// Prints:
//   day
//   /mode changed
//   /ready is there
