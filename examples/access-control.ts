import { acl, CREATOR_ALL, connect, digestAuth, NoAuthError } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

// #region acl
await using ann = await connect(SERVERS, { auth: [digestAuth('ann', 'secret')] });
await ann.create('/private', 'mine', { acl: CREATOR_ALL });
await ann.create('/shared', 'ours', { acl: [...CREATOR_ALL, acl.world('r'), acl.digest('bob', 'builder', 'rw')] });
// #endregion

await using bob = await connect(SERVERS);
try {
  await bob.get('/private');
} catch (error) {
  if (!(error instanceof NoAuthError)) throw error;
  console.log(`${error.code} ${error.path}`);
}

// Credentials may also come later.
const { scheme, auth } = digestAuth('bob', 'builder');
await bob.addAuth(scheme, auth);
await bob.set('/shared', 'yours and mine');
console.log((await bob.whoAmI()).map(({ scheme, user }) => `${scheme}:${user}`).join(' '));

await ann.delete('/private');
await ann.delete('/shared');

// Prints:
//   NOAUTH /private
//   ip:127.0.0.1 digest:bob
