import { type Codec, connect, DecodeError, gzip, json } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

// #region own
/** A codec of your own is two functions. `null` is a znode that holds nothing. */
const port: Codec<number> = {
  encode: (value) => new TextEncoder().encode(String(value)),
  decode: (data) => Number(new TextDecoder().decode(data ?? new Uint8Array(0))),
};
await client.create('/port', 8080, { codec: port });
const { data } = await client.get('/port', { codec: port }); // data: number
// #endregion
console.log(data + 1);

// Codecs are put together. What is not packed is read as it is.
const report = gzip(json<{ readonly words: readonly string[] }>());
await client.create('/report', { words: Array.from({ length: 1000 }, () => 'meerkat') }, { codec: report });
const found = await client.get('/report', { codec: report });
console.log(`${found.data.words.length} words in ${found.stat.dataLength < 200 ? 'under' : 'over'} 200 bytes`);

try {
  await client.get('/port', { codec: report });
} catch (error) {
  if (!(error instanceof DecodeError)) throw error;
  console.log(`${error.code} ${error.path}`);
}

await client.delete('/port');
await client.delete('/report');

// Prints:
//   8081
//   1000 words in under 200 bytes
