import { BadVersionError, connect, text } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

// A znode holds bytes. Text is sent as UTF-8, and a codec reads it back.
await client.create('/jobs', 'nothing to do');
const { data, stat } = await client.get('/jobs', { codec: text });
console.log(`${data}: version ${stat.version}, created by ${stat.czxid > 0n ? 'a txn' : 'nobody'}`);

// A version makes a change conditional: it is refused when another client was faster.
await client.set('/jobs', 'three jobs', { version: stat.version });
try {
  await client.set('/jobs', 'four jobs', { version: stat.version });
} catch (error) {
  if (!(error instanceof BadVersionError)) throw error;
  console.log(`${error.code}, path ${error.path}, ${error.outcome}`);
}

// The service appends a number to the name of a sequential znode.
for (const job of ['wash', 'iron', 'fold']) await client.create('/jobs/job-', job, { sequential: true });
const { children } = await client.children('/jobs');
console.log(children.toSorted().join(' '));

// `exists` answers null where there is nothing.
console.log(await client.exists('/jobs/job-0000000007'));

// A znode with children is not deleted; deleteRecursive deletes all of it.
console.log(`${await client.deleteRecursive('/jobs')} znodes deleted`);

// Prints:
//   nothing to do: version 0, created by a txn
//   BADVERSION, path /jobs, not-applied
//   job-0000000000 job-0000000001 job-0000000002
//   null
//   4 znodes deleted
