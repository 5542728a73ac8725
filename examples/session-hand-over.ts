import { connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });

// #region old
// A process owns something by an ephemeral znode. Id and password of its session are all that a successor needs.
const old = await connect(proxy.connectString);
await old.create('/owner', 'process 1', { mode: 'ephemeral' });
const { session } = old;
if (session === null) throw new Error('connected without a session');
// #endregion

// The process dies without closing its client: for the service, nothing more is heard of it.
await proxy.refuse();
await proxy.cut();

// #region new
// Within the session timeout another process goes on with the session. The znode never was without an owner.
await using successor = await connect(server.connectString, { session });
const stat = await successor.exists('/owner');
console.log(stat?.ephemeralOwner === session.id ? 'the znode is still there, and ours' : 'it is gone');
// #endregion

await old.close();

// Prints:
//   the znode is still there, and ours
