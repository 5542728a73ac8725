import { connect, text } from '@meerkat/client';
import { PersistentEphemeral } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const observer = await connect(SERVERS);

// #region stale
// A process dies without a word: its session, and with it its znode, lives on for up to 30 seconds.
const before = await connect(SERVERS, { sessionTimeoutMs: 30_000 });
const old = new PersistentEphemeral(before, '/workers/host1', { data: 'first life', owner: 'host1' });
await old.whenPresent();
const left = await before.detach();

// Its successor knows the znode by the mark of the owner, and takes the place at once.
const client = await connect(SERVERS);
const presence = new PersistentEphemeral(client, '/workers/host1', { data: 'second life', owner: 'host1' });
await presence.whenPresent();
// #endregion
console.log((await observer.get('/workers/host1', { codec: text, read: 'linearizable' })).data);

// Deleted by hand, it is recreated as a new znode with a larger token.
const token = presence.token ?? 0n;
await observer.delete('/workers/host1');
for await (const state of presence) {
  if (state.isPresent && state.token > token) break;
}
console.log('it is back');
await presence.set('still here');

await presence.close();
console.log(await observer.exists('/workers/host1', { read: 'linearizable' }));
await client.close();
await (await connect(SERVERS, { session: left })).close();
await observer.deleteRecursive('/workers');
await observer.close();

// Prints:
//   second life
//   it is back
//   null
