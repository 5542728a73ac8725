import { connect, text } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);
await client.create('/visits', '0');

// #region update
// Reads, computes, and writes unless it was changed meanwhile; else tries again.
const visit = () => client.update('/visits', (count) => `${Number(count) + 1}`, { codec: text });
await Promise.all(Array.from({ length: 20 }, visit));
// #endregion

const { data, stat } = await client.get('/visits', { codec: text });
console.log(`${data} visits, version ${stat.version}`);
await client.delete('/visits');

// Prints:
//   20 visits, version 20
