import { connect, text } from '@meerkat/client';
import { Barrier, CountDownLatch, CyclicBarrier, DoubleBarrier, Rendezvous } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const clients = await Promise.all([connect(SERVERS), connect(SERVERS), connect(SERVERS)]);
const [client] = clients;

const barrier = new Barrier(client, '/barriers/migration');
await barrier.set();
const waiting = barrier.wait().then(() => console.log('the migration is over'));
await barrier.remove();
await waiting;

// #region double
const rounds = await Promise.all(
  clients.map(async (each) => {
    await using inside = await new DoubleBarrier(each, '/barriers/computation', 3).enter();
    // All three are here, and none continues below before all three have reached the end of this scope.
    return inside.round;
  }),
);
console.log(`one round for all: ${new Set(rounds).size === 1}`);
// #endregion

const meetings = await Promise.all(
  ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address, i) =>
    new Rendezvous(clients[i] ?? client, '/barriers/addresses', 3, { codec: text }).meet(address),
  ),
);
for (const { values } of meetings) console.log(values.toSorted().join(' '));

for (const step of ['map', 'shuffle', 'reduce']) {
  await Promise.all(clients.map((each) => new CyclicBarrier(each, '/barriers/steps', 3).wait()));
  console.log(`all have done ${step}`);
}

const latches = clients.map((each) => new CountDownLatch(each, '/barriers/imports', 3));
const ready = latches[0]?.wait();
for (const latch of latches) console.log(`left: ${await latch.countDown()}`);
await ready;
console.log('all imports are done');

for (const each of clients.slice(1)) await each.close();
await client.deleteRecursive('/barriers');
await client.close();

// Prints:
//   the migration is over
//   one round for all: true
//   10.0.0.1 10.0.0.2 10.0.0.3
//   10.0.0.1 10.0.0.2 10.0.0.3
//   10.0.0.1 10.0.0.2 10.0.0.3
//   all have done map
//   all have done shuffle
//   all have done reduce
//   left: 2
//   left: 1
//   left: 0
//   all imports are done
