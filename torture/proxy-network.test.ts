import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { Cut } from './network.ts';
import { ProxyNetwork } from './proxy-network.ts';

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Echo {
  readonly socket: Socket;
  /** Everything received so far. */
  text(): string;
}

/** Two servers whose ports echo what they receive, and one client. */
async function startNetwork(): Promise<ProxyNetwork> {
  const network = await ProxyNetwork.start(2, 1);
  ends.push(() => network.close());
  for (const { ports } of network.places) {
    for (const port of Object.values(ports)) {
      const server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(port, '127.0.0.1');
      await once(server, 'listening');
      ends.push(async () => server.close());
    }
  }
  return network;
}

async function dial(port: number): Promise<Echo> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  ends.push(async () => socket.destroy());
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  return { socket, text: () => text };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function portOf(network: ProxyNetwork, id: number): number {
  return Number(network.connectString(1, [id]).split(':')[1]);
}

it('a cut holds back traffic from one host to another until it is lifted, and no other traffic', async () => {
  const network = await startNetwork();
  const [cut, free] = [await dial(portOf(network, 1)), await dial(portOf(network, 2))];
  network.setCuts([{ from: 'zk1', to: 'c1', port: null }]);
  cut.socket.write('a');
  free.socket.write('b');
  await until(() => free.text() === 'b');
  expect(cut.text()).toBe('');
  network.setCuts([]);
  await until(() => cut.text() === 'a');
});

it('a cut of a port does not affect the other ports', async () => {
  const network = await startNetwork();
  const proxied = new Map(network.redirectionsOf(1));
  const { ports } = network.places[1]!;
  const [quorum, election] = [await dial(proxied.get(ports.quorum)!), await dial(proxied.get(ports.election)!)];
  const port = { host: 'zk2', kind: 'quorum' } as const;
  const cuts: Cut[] = [
    { from: 'zk1', to: 'zk2', port },
    { from: 'zk2', to: 'zk1', port },
  ];
  network.setCuts(cuts);
  quorum.socket.write('a');
  election.socket.write('b');
  await until(() => election.text() === 'b');
  expect(quorum.text()).toBe('');
  network.setCuts([]);
  await until(() => quorum.text() === 'a');
});

it('resolves the server behind each proxy of a client, and breaks connections', async () => {
  const network = await startNetwork();
  expect(network.serverAt('127.0.0.1', portOf(network, 2))).toBe(2);
  const { socket } = await dial(portOf(network, 2));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  // The proxy must have accepted the connection first.
  socket.write('a');
  await once(socket, 'data');
  network.breakStreams(['c1'], () => true);
  await closed;
});
