import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { connect, type RequestTrace, type StateChange } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

// Observes every client of this process.
const onState = (message: unknown): void => {
  const { previous, state } = message as StateChange;
  console.log(`${previous} -> ${state}`);
};
subscribe('meerkat.client.state', onState);

// #region requests
const requests = {
  start() {},
  end() {},
  asyncStart() {},
  error() {},
  asyncEnd({ operation, path, error }: RequestTrace) {
    console.log(`${operation} ${path}: ${error instanceof Error ? error.name : 'done'}`);
  },
};
const channel = tracingChannel<unknown, RequestTrace>('meerkat.client.request');
channel.subscribe(requests);
// #endregion

const client = await connect(SERVERS);
await client.create('/a');
await client.delete('/b').catch(() => undefined);
await client.delete('/a');
await client.close();
channel.unsubscribe(requests);
unsubscribe('meerkat.client.state', onState);

// Prints:
//   connecting -> connected
//   create /a: done
//   delete /b: NoNodeError
//   delete /a: done
//   connected -> closed
