// Only the client, for other runtimes: node client.js <host:port>
import { connect, text } from '@meerkat/client';

const address = (globalThis as { process?: { argv: readonly string[] } }).process?.argv[2] ?? '';
const client = await connect(address);
const { path } = await client.create('/runtime-', 'hello', { mode: 'ephemeral', sequential: true });
const changes = client.watch(path);
await changes.ready;
await client.set(path, 'good morning');
for await (const event of changes) {
  console.log(event.type);
  break;
}
console.log((await client.get(path, { codec: text })).data);
await client.close();
