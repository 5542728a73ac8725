import { connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();

// #region old
// A process owns something by an ephemeral znode, and leaves its session to a successor.
const old = await connect(server.connectString);
await old.create('/owner', 'process 1', { mode: 'ephemeral' });
const session = await old.detach();
// #endregion

// #region new
// Within the session timeout another process continues the session: id and password are all that it needs.
// The znode never was without an owner. A process that died without a word is succeeded in the same way.
await using successor = await connect(server.connectString, { session });
const stat = await successor.exists('/owner');
console.log(stat?.ephemeralOwner === session.id ? 'the znode is still there, and ours' : 'it is gone');
// #endregion

// Prints:
//   the znode is still there, and ours
