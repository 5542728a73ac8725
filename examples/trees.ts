import { connect } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

// Missing parents are made, too.
await client.createParents('/services/search/instances/a', '10.0.0.7:8080', { mode: 'ephemeral' });
await client.ensurePath('/services/mail/instances');
console.log(`${await client.descendantCount('/services')} znodes below /services`);

const deleted = await client.deleteRecursive('/services');
console.log(`${deleted} deleted`);

// Prints:
//   5 znodes below /services
//   6 deleted
