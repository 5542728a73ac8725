import { connect, text } from '@meerkat/client';
import { type Migration, Migrations } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
await using client = await connect(SERVERS);

// #region migrations
const SHOP: Migration[] = [
  // Release 1
  [
    { kind: 'create', path: '/shop', data: 'layout 1' },
    { kind: 'create', path: '/shop/items' },
  ],
  // Release 2: what was applied stays as it is, and another one comes behind it.
  [
    { kind: 'create', path: '/shop/articles' },
    { kind: 'delete', path: '/shop/items' },
    { kind: 'set', path: '/shop', data: 'layout 2' },
  ],
];

// Every process says this when it starts.
const migrations = new Migrations(client);
console.log(await migrations.apply('shop', SHOP));
console.log(await migrations.apply('shop', SHOP));
// #endregion
console.log((await client.get('/shop', { codec: text })).data);

for (const path of ['/shop', '/migrations']) await client.deleteRecursive(path);

// Prints:
//   { total: 2, applied: 2 }
//   { total: 2, applied: 0 }
//   layout 2
