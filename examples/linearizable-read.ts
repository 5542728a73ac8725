import { connect, text } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using writer = await connect(SERVERS);
await using reader = await connect(SERVERS);

await writer.create('/price', '100');
// `reader` may be connected to a server that lags behind. This read waits until it has caught up.
const { data } = await reader.get('/price', { codec: text, read: 'linearizable' });
console.log(data);
await writer.delete('/price');

// Prints:
//   100
