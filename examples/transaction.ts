import { connect, TransactionError } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);
await client.create('/accounts');
await client.create('/accounts/ann', '100');
await client.create('/accounts/bob', '0');

// #region commit
const [, debit, credit] = await client
  .transaction()
  .check('/accounts')
  .set('/accounts/ann', '70', { version: 0 })
  .set('/accounts/bob', '30', { version: 0 })
  .commit();
console.log(`versions ${debit.version} and ${credit.version}`);
// #endregion

try {
  await client.transaction().delete('/accounts/bob').set('/accounts/ann', '0', { version: 0 }).commit();
} catch (error) {
  if (!(error instanceof TransactionError)) throw error;
  console.log(`operation ${error.index}: ${error.cause.code} ${error.cause.path}`);
}

// #region multi-read
const [ann, eve] = await client.multiRead().get('/accounts/ann').get('/accounts/eve').run();
console.log(ann.ok ? `ann: ${new TextDecoder().decode(ann.value.data)}` : ann.error.code);
console.log(eve.ok ? 'eve is there' : `eve: ${eve.error.code}`);
// #endregion

await client.deleteRecursive('/accounts');

// Prints:
//   versions 1 and 1
//   operation 1: BADVERSION /accounts/ann
//   ann: 70
//   eve: NONODE
