import { ConnectionLossError, connect, withoutProtection } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString);
await client.create('/tasks');

// The server creates this znode, but the reply is lost: which of the children is it?
await loseNextReply();
try {
  await client.create('/tasks/task-', 'wash', { sequential: true });
} catch (error) {
  if (!(error instanceof ConnectionLossError)) throw error;
  console.log(`${error.code}, outcome ${error.outcome}`);
}

await client.whenConnected();
// #region protected
await loseNextReply();
// The name carries a mark, so the znode is found again and there is exactly one.
const { path } = await client.createProtected('/tasks/task-', 'iron', { sequential: true });
console.log(path.replace(/_c_[-0-9a-f]{36}-/, '_c_<uuid>-')); // /tasks/_c_<uuid>-task-0000000001
// #endregion

const { children } = await client.children('/tasks');
console.log(children.map(withoutProtection).toSorted().join(' '));

/** Cuts the connection before the next byte from the server. */
async function loseNextReply(): Promise<void> {
  const [connection] = proxy.connections;
  void connection?.cutAfter({ direction: 'toClient', bytes: 0 });
}

// Prints:
//   CONNECTIONLOSS, outcome unknown
//   /tasks/_c_<uuid>-task-0000000001
//   task-0000000000 task-0000000001
