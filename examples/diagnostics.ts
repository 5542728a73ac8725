import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type StateChange } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

// #region state
// Whoever watches over a process hears of every client in it, without touching them.
const onState = (message: unknown): void => {
  const { previous, state } = message as StateChange;
  console.log(`${previous} -> ${state}`);
};
subscribe('meerkat.client.state', onState);
// #endregion

const client = await connect(SERVERS);
await client.close();
unsubscribe('meerkat.client.state', onState);

// Prints:
//   connecting -> connected
//   connected -> closed
