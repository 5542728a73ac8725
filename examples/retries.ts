import { connect, retry } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString);
await client.create('/config', 'old');

// #region retry
// Repeats what certainly has not happened. `idempotent` says: twice does no harm, so an unknown outcome is repeated too.
for (const connection of proxy.connections) void connection.cutAfter({ direction: 'toClient', bytes: 0 });
const stat = await client.retry(
  retry.exponential({ attemptsMax: 5, pauseMinMs: 50 }),
  (attempt) => {
    console.log(`attempt ${attempt}`);
    return client.set('/config', 'new');
  },
  { idempotent: true },
);
console.log(`version ${stat.version}`);
// #endregion

// Prints:
//   attempt 1
//   attempt 2
//   version 2
