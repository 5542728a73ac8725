// Attacks on the admin port, which accepts 64 connections.
import { Agent, get } from 'node:http';
import { connect, createServer } from 'node:net';
import { connect as connectTls } from 'node:tls';

const HOST = '127.0.0.1';
const CONNECTIONS = 64;
const DEAREST = ['connections', 'dump', 'watches_by_path', 'stats', 'monitor', 'hash'].map(
  (name) => `/commands/${name}`,
);
const PATHS = [...DEAREST, '/metrics', '/readyz?verbose', '/openapi.json'];

export const ADMIN_ATTACKS = [
  {
    name: 'admin port: 64 connections that ask for everything, without end',
    make: async ({ adminPort }) => ({ adminPort, client: counter() }),
    async attack({ adminPort, client }, isOver) {
      const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
      const ask = (path) =>
        new Promise((resolve) => {
          get({ agent, host: HOST, port: adminPort, path }, (answer) => {
            client.count(answer.statusCode === 200 ? 0 : answer.statusCode);
            answer.on('error', resolve).on('end', resolve).resume();
          }).on('error', resolve);
        });
      const loop = async (first) => {
        for (let i = first; !isOver(); i++) await ask(PATHS[i % PATHS.length]);
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => loop(i)));
      agent.destroy();
    },
  },
  {
    name: 'admin port: ClientHellos that go no further',
    async make({ adminPort }) {
      return { adminPort, hello: await recordHello(), client: counter() };
    },
    async attack({ adminPort, hello, client }, isOver) {
      const one = () =>
        new Promise((resolve) => {
          const socket = connect(adminPort, HOST, () => socket.write(hello));
          socket
            .on('data', () => client.count(0))
            .on('close', resolve)
            .on('error', resolve);
        });
      const loop = async () => {
        while (!isOver()) await Promise.race([one(), new Promise((resolve) => setTimeout(resolve, 100))]);
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, loop));
    },
  },
];

/** Counts of an attacker, reported at its end. */
function counter() {
  return {
    replies: 0,
    errors: new Map(),
    count(error) {
      this.replies++;
      if (error !== 0) this.errors.set(error, (this.errors.get(error) ?? 0) + 1);
    },
  };
}

/** A ClientHello as sent by the Node.js client. */
function recordHello() {
  return new Promise((resolve) => {
    const trap = createServer((socket) => {
      socket.once('data', (bytes) => {
        trap.close();
        socket.destroy();
        resolve(bytes);
      });
    });
    trap.listen(0, HOST, () => connectTls({ host: HOST, port: trap.address().port }).on('error', () => {}));
  });
}
