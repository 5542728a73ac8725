import { connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using client = await connect(server.connectString);
const changes = client.states();

// A server restart breaks the connection, but not the session.
await server.restart();
await print(2);

// A session that the service has ended is replaced by a new one.
await server.expireSession(client.session?.id ?? 0n);
await print(3);

/** The next changes of state. */
async function print(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { value: change } = await changes.next();
    if (change === undefined) return;
    const { previous, state, sameSession } = change;
    const session = state !== 'connected' ? '' : sameSession ? ', the same session' : ', a new session';
    console.log(`${previous} -> ${state}${session}`);
  }
}

// Prints:
//   connected -> suspended
//   suspended -> connected, the same session
//   connected -> suspended
//   suspended -> lost
//   lost -> connected, a new session
