// A program that uses the published packages.
import { connect, text } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

const server = await TestServer.start();
const client = await connect(server.connectString);
await client.create('/greeting', 'hello');
const { data, stat } = await client.get('/greeting', { codec: text });
const mutex = new Mutex(client, '/locks/a');
const lock = await mutex.acquire({ timeoutMs: 10_000 });
await lock.release();
await client.close();
await server.stop();
console.log(`${data}, version ${stat.version}`);
