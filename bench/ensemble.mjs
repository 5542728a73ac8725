// An ensemble of servers of one engine on loopback, each with its own directory on the same disk.
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from './engine.mjs';
import { zkload } from './load-generator.mjs';
import { exited } from './processes.mjs';

/** Below the ephemeral port range, so that a restarted server finds its port free. */
const PORTS = { min: 20_000, max: 31_999 };
const READY_LIMIT_S = 120;

export class Ensemble {
  /** @param size number of servers; their ids are 1, 2, 3 … */
  constructor(engine, directory, size = 3) {
    this.engine = engine;
    this.directory = directory;
    this.servers = Array.from({ length: size }, (_, i) => new Server(engine, join(directory, String(i + 1))));
  }

  /** All servers, in zkload's format. */
  get hosts() {
    return hostsOf(this.servers);
  }

  get pids() {
    return pidsOf(this.servers);
  }

  /** Starts all servers at once and waits until each of them answers and a write has been acknowledged. */
  async start() {
    const ports = await freePorts(this.servers.length * 3);
    const members = {};
    this.servers.forEach((server, i) => {
      server.port = ports[3 * i];
      members[`server.${i + 1}`] = `127.0.0.1:${ports[3 * i + 1]}:${ports[3 * i + 2]}`;
    });
    this.servers.forEach((server, i) => {
      server.settings = members;
      mkdirSync(join(server.directory, 'data'), { recursive: true });
      writeFileSync(join(server.directory, 'data', 'myid'), `${i + 1}\n`);
      server.launch();
    });
    const died = this.servers.map(async (server) => {
      await exited(server.child);
      throw new Error(`a server of ${this.engine.name} ended; see ${server.directory}/log`);
    });
    for (const death of died) death.catch(() => {});
    await Promise.race([this.ready(), ...died]);
  }

  /** Waits until all servers answer and a write has been acknowledged. */
  ready() {
    return zkload('ready', this, { limit: READY_LIMIT_S, write: 1 });
  }

  /** The server that reports that it leads. */
  async leader() {
    const end = performance.now() + READY_LIMIT_S * 1000;
    while (performance.now() < end) {
      for (const server of this.servers) {
        if (/^Mode: leader$/m.test(await fourLetterWord(server.port, 'srvr'))) return server;
      }
      await sleep(20);
    }
    throw new Error(`no server of ${this.engine.name} leads`);
  }

  /** One that does not lead. */
  async follower() {
    const leader = await this.leader();
    return this.servers.find((server) => server !== leader);
  }

  /** All servers but one, in zkload's format. */
  without(absent) {
    const others = this.servers.filter((server) => server !== absent);
    return { hosts: hostsOf(others), pids: pidsOf(others) };
  }

  async destroy() {
    await Promise.all(this.servers.map((server) => server.destroy()));
  }
}

const hostsOf = (servers) => servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
const pidsOf = (servers) => servers.map(({ pid }) => pid).join(',');

/** A server's answer to a four-letter word; empty when it is down. */
function fourLetterWord(port, word) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(word));
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk) => (answer += chunk));
    socket.setTimeout(2000, () => socket.destroy());
    socket.once('error', () => {});
    socket.once('close', () => resolve(answer));
  });
}

async function freePorts(count) {
  const probes = [];
  while (probes.length < count) {
    const port = PORTS.min + Math.floor(Math.random() * (PORTS.max - PORTS.min));
    const probe = await listen(port);
    if (probe !== null) probes.push(probe);
  }
  const ports = probes.map((probe) => probe.address().port);
  await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))));
  return ports;
}

function listen(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(null));
    probe.listen(port, '127.0.0.1', () => resolve(probe));
  });
}
