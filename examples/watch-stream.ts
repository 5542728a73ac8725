import { connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString);
await using other = await connect(server.connectString);
await other.create('/services');

// #region loop
await using changes = client.watch('/services', { recursive: true });
await changes.ready; // from here on nothing is missed while the connection stands

// #endregion
await other.create('/services/search', 'host-1');
await other.set('/services/search', 'host-2');

// #region loop
for await (const event of changes) {
  if (event.type !== 'gap') {
    console.log(`${event.path} ${event.type}`);
    // #endregion
    if (event.type === 'changed') {
      await proxy.cut();
      await other.delete('/services/search');
      await other.create('/services/mail', 'host-3');
    }
    // #region loop
    continue;
  }
  // The connection was away. The watch is set again: read what it has missed.
  const { children } = await client.children('/services');
  console.log(`${event.reason}: ${children.join(' ')}`);
  // #endregion
  break;
  // #region loop
}
// #endregion

// Prints:
//   /services/search created
//   /services/search changed
//   reconnected: mail
