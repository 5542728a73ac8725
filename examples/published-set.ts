import { connect, text } from '@meerkat/client';
import { PublishedSet } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using publisher = await connect(SERVERS);
await using client = await connect(SERVERS);

// #region publish
const routes = new PublishedSet(publisher, '/routes', { codec: text, keep: 2 });
await routes.publish({ '10.0.0.0': 'a', '10.0.1.0': 'b' });
const inForce = await routes.publish({ '10.0.0.0': 'c', '10.0.1.0': 'd', '10.0.2.0': 'c' });
// #endregion

const set = await new PublishedSet(client, '/routes', { codec: text }).read({ timeoutMs: 10_000 });
console.log(set?.name === inForce, Object.fromEntries(set?.entries ?? []));

await routes.rollback();
for await (const { entries } of new PublishedSet(client, '/routes', { codec: text }).observe()) {
  console.log(`${entries.size} routes`);
  break;
}

await publisher.deleteRecursive('/routes');

// Prints:
//   true { '10.0.0.0': 'c', '10.0.1.0': 'd', '10.0.2.0': 'c' }
//   2 routes
