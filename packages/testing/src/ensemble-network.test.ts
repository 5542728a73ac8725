import type { ConnectEvents, ListenEvents, Network } from '@meerkat/core';
import { expect, test } from 'vitest';
import { EnsembleNetwork } from './ensemble-network.ts';

/** Quorum and election ports of servers 1 and 2. */
const OWNERS = new Map([
  [10, 1],
  [11, 1],
  [20, 2],
  [21, 2],
]);

/** Sockets of which every port is taken and every connection is counted. */
class CountingNetwork implements Network {
  readonly dialed: number[] = [];

  listen(_at: unknown, events: ListenEvents): { close(): void } {
    events.onListenFailed('EADDRINUSE');
    return { close() {} };
  }

  connect({ port }: { readonly port: number }): { cancel(): void } {
    this.dialed.push(port);
    return { cancel() {} };
  }
}

const NO_EVENTS: ConnectEvents & ListenEvents = {
  onConnected: () => expect.fail('there is no connection'),
  onConnectFailed() {},
  onListening() {},
  onListenFailed() {},
  onAccepted: () => expect.fail('there is no connection'),
};

function networkOf(ensemble: EnsembleNetwork, serverId: number): { network: Network; sockets: CountingNetwork } {
  const sockets = new CountingNetwork();
  return { sockets, network: ensemble.decoratorOf(serverId)(sockets, (event) => event()) };
}

test('a port between servers that is taken is known to the caller that has chosen it', () => {
  const ensemble = new EnsembleNetwork(OWNERS);
  expect(ensemble.takenPort).toBeNull();
  networkOf(ensemble, 1).network.listen({ host: '127.0.0.1', port: 11 }, NO_EVENTS);
  expect(ensemble.takenPort).toMatchObject({
    code: 'EADDRINUSE',
    message: 'cannot listen for other servers on 127.0.0.1:11: it is in use',
  });
});

test('a connection behind a cut is made when the cut ends, unless it was cancelled', () => {
  const ensemble = new EnsembleNetwork(OWNERS);
  const { network, sockets } = networkOf(ensemble, 1);
  ensemble.partition([[1]]);
  network.connect({ host: '127.0.0.1', port: 20 }, NO_EVENTS);
  const givenUp = network.connect({ host: '127.0.0.1', port: 21 }, NO_EVENTS);
  ensemble.partition([[1], [2]]);
  expect(sockets.dialed).toEqual([]);
  givenUp.cancel();
  ensemble.heal();
  expect(sockets.dialed).toEqual([20]);
});

test('servers that no group names reach each other, and those of one group too', () => {
  const ensemble = new EnsembleNetwork(OWNERS);
  ensemble.partition([[1, 2], [3]]);
  expect(ensemble.isCut(1, 2)).toBe(false);
  expect(ensemble.isCut(4, 5)).toBe(false);
  expect(ensemble.isCut(1, 3)).toBe(true);
  expect(ensemble.isCut(3, 4)).toBe(true);
});
