import { connect, retry } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString);
await client.create('/config', 'old');

for (const connection of proxy.connections) void connection.cutAfter({ direction: 'toClient', bytes: 0 });
// #region retry
const stat = await client.retry(
  retry.exponential({ attemptsMax: 5, pauseMinMs: 50 }),
  (attempt) => {
    console.log(`attempt ${attempt}`);
    return client.set('/config', 'new');
  },
  { idempotent: true },
);
// #endregion
console.log(`version ${stat.version}`);

// Prints:
//   attempt 1
//   attempt 2
//   version 2
