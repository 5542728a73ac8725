import { connect } from '@meerkat/client';
import { Group } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const observer = await connect(SERVERS);
const client = await connect(SERVERS);

// #region join
const group = new Group(client, '/groups/shop');
const ann = group.join('ann', { data: '10.0.0.1:8080' });
await ann.whenJoined();
const bob = group.join('bob', { data: '10.0.0.2:8080' });
await bob.whenJoined();
// #endregion

// #region observe
const decoder = new TextDecoder();
// #endregion
const steps = [() => ann.set('10.0.0.9:8080'), () => bob.close(), () => client.close()];
// #region observe
for await (const { members, joined, left, changed } of new Group(observer, '/groups/shop').observe()) {
  for (const { id, data } of joined) console.log(`${id} joined: ${decoder.decode(data)}`);
  for (const { id, data } of changed) console.log(`${id} is at ${decoder.decode(data)} now`);
  for (const { id } of left) console.log(`${id} left`);
  if (members.length === 0) break;
  // #endregion
  // One change after the other.
  void steps.shift()?.();
  // #region observe
}
// #endregion

await observer.deleteRecursive('/groups');
await observer.close();

// Prints:
//   ann joined: 10.0.0.1:8080
//   bob joined: 10.0.0.2:8080
//   ann is at 10.0.0.9:8080 now
//   bob left
//   ann left
