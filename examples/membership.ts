import { connect } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using observer = await connect(SERVERS);
await observer.ensurePath('/members');
await using changes = observer.watch('/members');
await changes.ready;

// Each member is a znode that lives as long as its session.
const ann = await connect(SERVERS);
await ann.create('/members/ann', '10.0.0.1:8080', { mode: 'ephemeral' });
await printMembers();

const bob = await connect(SERVERS);
await bob.create('/members/bob', '10.0.0.2:8080', { mode: 'ephemeral' });
await printMembers();

// Closing a client ends its session at once; a process that dies loses it after the session timeout.
await ann.close();
await printMembers();

await bob.close();
await observer.deleteRecursive('/members');

/** Waits for a change and lists who is there. A `gap` means: something may have been missed, so look as well. */
async function printMembers(): Promise<void> {
  for await (const event of observer.watch('/members')) {
    if (event.type !== 'children' && event.type !== 'gap') continue;
    const { children } = await observer.children('/members');
    console.log(children.toSorted().join(' '));
    break;
  }
}
