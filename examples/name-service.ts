import { connect } from '@meerkat/client';
import { NameService } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
await using client = await connect(SERVERS);

// #region names
const names = new NameService(client, '/names');
const { version } = await names.bind('db/orders', '10.0.0.5:5432');
console.log(await names.resolve('db/orders'));
await names.rebind('db/orders', '10.0.0.6:5432', { version });
console.log(await names.resolve('db/orders'), await names.list('db'));
// #endregion

// #region unique
const worker = await names.claim('worker-');
console.log(worker.name);
console.log(await names.nextId('orders'), await names.nextId('orders'));
await worker.release();
// #endregion

await client.deleteRecursive('/names');

// Prints:
//   10.0.0.5:5432
//   10.0.0.6:5432 [ 'orders' ]
//   worker-0000000001
//   0 1
