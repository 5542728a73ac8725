import { connect } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';

await using client = await connect(process.env['ZOOKEEPER'] ?? '');
await using lock = await new Mutex(client, '/locks/orders').acquire();
console.log(lock.isHeld);
