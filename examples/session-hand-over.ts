import { connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();

// #region hand-over
const old = await connect(server.connectString);
await old.create('/owner', 'process 1', { mode: 'ephemeral' });
const session = await old.detach();

// Another process, within the session timeout. The znode never was without an owner.
await using successor = await connect(server.connectString, { session });
// #endregion
const stat = await successor.exists('/owner');
console.log(stat?.ephemeralOwner === session.id ? 'the znode is still there, and ours' : 'it is gone');

// Prints:
//   the znode is still there, and ours
