import { ConnectionLossError, connect, isZooKeeperError, text } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString);
await client.create('/light', 'off');

cutBeforeReply();
try {
  await client.set('/light', 'on');
} catch (error) {
  if (!(error instanceof ConnectionLossError)) throw error;
  console.log(`set: ${error.code}, outcome ${error.outcome}`);
}

// A read is retried automatically on the next connection. Here it shows that the write was applied.
cutBeforeReply();
console.log(`get: ${(await client.get('/light', { codec: text })).data}`);

// Setting data on a known version can be repeated: a retry that finds its own effect counts as done.
const { stat } = await client.get('/light');
cutBeforeReply();
const after = await client.setIdempotent('/light', 'off', { version: stat.version });
console.log(`setIdempotent: version ${stat.version} -> ${after.version}`);

// #region code
try {
  await client.delete('/lamp');
} catch (error) {
  // The compiler knows all codes.
  if (!isZooKeeperError(error) || error.code !== 'NONODE') throw error;
  console.log(`${error.operation} ${error.path}: nothing to do`);
}
// #endregion

/** Cuts the current connection before the next byte from the server. */
function cutBeforeReply(): void {
  for (const connection of proxy.connections) void connection.cutAfter({ direction: 'toClient', bytes: 0 });
}

// Prints:
//   set: CONNECTIONLOSS, outcome unknown
//   get: on
//   setIdempotent: version 1 -> 2
//   delete /lamp: nothing to do
