import { connect } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

// After the last server: the root of all paths. Connecting does not create it.
await using shop = await connect(`${SERVERS}/apps/shop`);
await shop.ensurePath('/');
await shop.create('/config', 'on');

// The same session, with a deeper root.
const orders = shop.withChroot('/orders');
await orders.ensurePath('/');
const { path } = await orders.create('/order-', 'a hat', { sequential: true });
console.log(`${path} in ${orders.chroot}`);

const { children } = await shop.children('/');
console.log(children.toSorted().join(' '));

// A second client, without a chroot.
await using whole = await connect(SERVERS);
console.log(`${await whole.deleteRecursive('/apps')} znodes deleted`);

// Prints:
//   /order-0000000000 in /apps/shop/orders
//   config orders
//   5 znodes deleted
