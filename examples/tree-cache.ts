import { connect } from '@meerkat/client';
import { TreeCache } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const show = (data: Uint8Array | null | undefined) => new TextDecoder().decode(data ?? undefined);

await using writer = await connect(SERVERS);
await writer.createParents('/shop/prices/apple', '10');
await writer.create('/shop/prices/pear', '12');
await using client = await connect(SERVERS);

// #region cache
await using cache = new TreeCache(client, '/shop');
await cache.ready;
for (const name of cache.children('/shop/prices') ?? []) {
  console.log(`${name} costs ${show(cache.get(`/shop/prices/${name}`)?.data)}`);
}
// #endregion

const changes = cache.changes();
const both = writer.transaction().set('/shop/prices/apple', '11').set('/shop/prices/pear', '13');
const [apple] = await both.commit();

// Both or neither: the cache shows the tree as it was at one zxid.
await cache.waitFor(apple.mzxid);
for (let i = 0; i < 2; i++) {
  const { value: change } = await changes.next();
  console.log(`${change?.type} ${change?.path}: ${show(change?.before?.data)} → ${show(change?.after?.data)}`);
}
console.log(`of that transaction or a later one: ${cache.zxid >= apple.mzxid}, stale: ${cache.stale}`);

await writer.deleteRecursive('/shop');

// Prints:
//   apple costs 10
//   pear costs 12
//   changed /shop/prices/apple: 10 → 11
//   changed /shop/prices/pear: 12 → 13
//   of that transaction or a later one: true, stale: false
