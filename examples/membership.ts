import { connect } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using observer = await connect(SERVERS);
await observer.ensurePath('/members');
let { changed } = await observer.children('/members', { watch: true });

// A member is a znode that lives as long as the session of its client.
const ann = await connect(SERVERS);
await ann.create('/members/ann', '10.0.0.1:8080', { mode: 'ephemeral' });
await printMembers();

const bob = await connect(SERVERS);
await bob.create('/members/bob', '10.0.0.2:8080', { mode: 'ephemeral' });
await printMembers();

// Closing a client ends its session at once. A process that dies loses it when its session timeout has passed.
await ann.close();
await printMembers();

await bob.close();
await observer.delete('/members');

/** Waits for a change, and reads the list together with a new watch, so that no later change is missed. */
async function printMembers(): Promise<void> {
  await changed;
  const listing = await observer.children('/members', { watch: true });
  changed = listing.changed;
  console.log(`${listing.children.length}: ${listing.children.toSorted().join(', ')}`);
}

// Prints:
//   1: ann
//   2: ann, bob
//   1: bob
