import { AbortedError, connect, TimeoutError } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using client = await connect(server.connectString);
server.pause();

try {
  await client.get('/', { timeoutMs: 50 });
} catch (error) {
  if (!(error instanceof TimeoutError)) throw error;
  console.log(`${error.operation}: ${error.code}`);
}

const leaving = new AbortController();
const reading = client.get('/', { signal: leaving.signal });
leaving.abort('the page was left');
try {
  await reading;
} catch (error) {
  if (!(error instanceof AbortedError)) throw error;
  console.log(`${error.name}: ${error.cause}`);
}

server.resume();

// Prints:
//   get: TIMEOUT
//   AbortError: the page was left
