import { type ElectionNotification, type Membership, makeZxid, parseMembership, ServerState } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ByteList, bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import type { ByteStream, PeerAuthentication, TraceEvent } from '../base/ports.ts';
import { MemoryNetwork, type MemoryNetworkOptions } from '../testing/memory-network.ts';
import { ElectionLinks } from './election-links.ts';

const CONFIG = 'version=0';
const ADDRESS_TIMEOUT_MS = 1000;

/** @param several servers that have a second address, `host<id>b` */
function makeMembership(
  ids: readonly number[],
  observers: readonly number[] = [],
  several: readonly number[] = [],
): Membership {
  const lines = ids.map((id) => {
    const second = several.includes(id) ? `|host${id}b:2888:3888` : '';
    return `server.${id}=host${id}:2888:3888${second}:${observers.includes(id) ? 'observer' : 'participant'}`;
  });
  const membership = parseMembership([...lines, 'version=0'].join('\n'));
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

/** A word that is told from others by its round. */
function makeWord(round: number): ElectionNotification {
  return {
    state: ServerState.looking,
    leader: 3,
    zxid: makeZxid(1, 5),
    electionEpoch: round,
    peerEpoch: 1,
    version: 2,
    configText: CONFIG,
    announces: 0,
  };
}

/** The bytes of `makeWord` in its frame: 44 bytes and the config. */
function frameOf(round: number): (b: ByteList) => ByteList {
  return (b) => b.int(53).int(0).long(3).long(0x100000005).long(round).long(1).int(2).text(CONFIG);
}

/** What one server has been told, and its links. */
class LinkedServer {
  readonly id: number;
  readonly links: ElectionLinks;
  readonly told: string[] = [];
  readonly traced: TraceEvent[] = [];
  readonly connected = new Set<number>();
  /** Round of the last word of each peer. */
  readonly heard = new Map<number, number>();

  constructor(ensemble: LinkedServers, id: number) {
    const { network } = ensemble;
    this.id = id;
    this.links = new ElectionLinks(
      {
        ports: {
          network: network.portOf(`host${id}`),
          clock: network.clock,
          random: network.random,
          peerAuthentication: ensemble.peerAuthentication,
        },
        trace: { emit: (event) => this.traced.push(event) },
      },
      { serverId: id, membership: ensemble.membership, addressTimeoutMs: ADDRESS_TIMEOUT_MS },
      {
        onPeerConnected: (peer) => {
          this.connected.add(peer);
          this.told.push(`connected ${peer}`);
        },
        onPeerUnreachable: (peer) => {
          this.connected.delete(peer);
          this.told.push(`unreachable ${peer}`);
        },
        onNotification: (from, { electionEpoch }) => {
          this.heard.set(from, electionEpoch);
          this.told.push(`${from} says ${electionEpoch}`);
        },
      },
    );
  }

  takeTold(): readonly string[] {
    return this.told.splice(0);
  }
}

class LinkedServers {
  readonly network: MemoryNetwork;
  readonly membership: Membership;
  readonly servers = new Map<number, LinkedServer>();
  peerAuthentication: PeerAuthentication | null = null;

  constructor(membership: Membership, seed = 1, options: Partial<MemoryNetworkOptions> = {}) {
    this.network = new MemoryNetwork(seed, options);
    this.membership = membership;
  }

  start(id: number): LinkedServer {
    const server = new LinkedServer(this, id);
    this.servers.set(id, server);
    server.links.start();
    server.links.connectAll();
    return server;
  }

  crash(id: number, isSilent = false): void {
    this.network.crash(`host${id}`, isSilent);
    this.servers.get(id)?.links.stop();
    this.servers.delete(id);
  }

  advance(ms: number): void {
    const untilMs = this.network.nowMs + ms;
    for (;;) {
      let deadlineMs = Number.POSITIVE_INFINITY;
      for (const { links } of this.servers.values()) deadlineMs = Math.min(deadlineMs, links.nextDeadlineMs());
      const eventMs = this.network.nextEventMs;
      if (Math.min(deadlineMs, eventMs) > untilMs) break;
      if (eventMs <= deadlineMs) this.network.step();
      else {
        this.network.nowMs = Math.max(this.network.nowMs, deadlineMs);
        for (const { links } of this.servers.values()) links.onTick();
      }
    }
    this.network.nowMs = untilMs;
  }

  /** Open ends at one host that lead to another. */
  streamsBetween(a: number, b: number): number {
    const isOf = (host: string, id: number): boolean => host === `host${id}` || host === `host${id}b`;
    return [...this.network.streams].filter(({ host, remote }) => isOf(host, a) && isOf(remote.host, b)).length;
  }
}

/** Somebody who speaks in bytes, at a host of his own. */
class Stranger {
  readonly streams: ByteStream[] = [];
  readonly received: number[] = [];
  readonly closed: string[] = [];
  readonly #network: MemoryNetwork;
  readonly #host: string;

  constructor(network: MemoryNetwork, host: string) {
    this.#network = network;
    this.#host = host;
  }

  listen(port = 3888): void {
    this.#network
      .portOf(this.#host)
      .listen(
        { host: this.#host, port },
        { onListening() {}, onListenFailed() {}, onAccepted: (stream) => this.#own(stream) },
      );
  }

  connect(host: string, ...writes: Uint8Array[]): void {
    this.#network.portOf(this.#host).connect(
      { host, port: 3888 },
      {
        onConnected: (stream) => {
          for (const bytes of writes) stream.write(bytes);
          return this.#own(stream);
        },
        onConnectFailed: (reason) => this.closed.push(reason),
      },
    );
  }

  #own(stream: ByteStream): { onBytes(chunk: Uint8Array): void; onDrain(): void; onClosed(reason: string): void } {
    this.streams.push(stream);
    return {
      onBytes: (chunk) => this.received.push(...chunk),
      onDrain() {},
      onClosed: (reason) => this.closed.push(reason),
    };
  }
}

function helloOf(id: number | bigint, address: string): Uint8Array {
  return bytesOf((b) => b.long(-65536).long(id).text(address));
}

describe('which connection stands', () => {
  it('the higher id dials, says who it is and where, and sends frames', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new Stranger(ensemble.network, 'host1');
    one.listen();
    const two = ensemble.start(2);
    two.links.send(1, makeWord(7));
    ensemble.advance(100);
    expect(Uint8Array.from(one.received)).toEqual(
      bytesOf((b) => frameOf(7)(b.long(-65536).long(2).text('host2:3888'))),
    );
    expect(one.closed).toEqual([]);
    expect(two.takeTold()).toEqual(['connected 1']);
  });

  it('the lower id dials, says who it is, closes, and is dialled', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = new Stranger(ensemble.network, 'host2');
    two.listen();
    const one = ensemble.start(1);
    one.links.send(2, makeWord(3));
    ensemble.advance(100);
    expect(Uint8Array.from(two.received)).toEqual(helloOf(1, 'host1:3888'));
    expect(two.closed).toEqual(['closed by peer']);
    expect(one.takeTold()).toEqual([]);

    two.received.length = 0;
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
    ensemble.advance(100);
    expect(one.takeTold()).toEqual(['connected 2', '2 says 4']);
    expect(Uint8Array.from(two.received)).toEqual(bytesOf(frameOf(3)));
    expect(ensemble.network.dials).toEqual(['host1>host2:3888', 'host2>host1:3888']);
  });

  it('one of a lower id that calls is dialled where it says that it is', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new Stranger(ensemble.network, 'elsewhere');
    one.listen(4000);
    const two = new LinkedServer(ensemble, 2);
    two.links.start();
    ensemble.advance(10);
    one.connect('host2', helloOf(1, 'elsewhere:4000'));
    ensemble.servers.set(2, two);
    ensemble.advance(100);
    expect(ensemble.network.dials).toEqual(['elsewhere>host2:3888', 'host2>elsewhere:4000']);
    expect(two.takeTold()).toEqual(['connected 1']);
    expect(one.closed).toEqual(['reset by peer']);
  });

  it('one that announces every interface is dialled where the configuration says (ZOOKEEPER-2164, 3725)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = new LinkedServer(ensemble, 2);
    ensemble.servers.set(2, two);
    two.links.start();
    ensemble.advance(10);
    new Stranger(ensemble.network, 'elsewhere').connect('host2', helloOf(1, '0.0.0.0:3888'));
    ensemble.advance(100);
    expect(ensemble.network.dials.slice(1)).toEqual(['host2>host1:3888']);
    expect(two.takeTold()).toEqual(['unreachable 1']);
  });

  it('one that calls again has lost its connection, which is replaced', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new Stranger(ensemble.network, 'host1');
    one.listen();
    const two = ensemble.start(2);
    ensemble.advance(10_000);
    expect(two.takeTold()).toEqual(['connected 1']);
    one.connect('host2', helloOf(1, 'host1:3888'));
    ensemble.advance(100);
    expect(two.takeTold()).toEqual(['connected 1']);
    expect(one.closed).toEqual(['reset by peer', 'reset by peer']);
    expect(ensemble.streamsBetween(2, 1)).toBe(1);
  });

  it('a second connection of a higher id waits for a second, and takes the place of a first that says nothing', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    const two = new Stranger(ensemble.network, 'host2');
    ensemble.advance(10);
    two.connect('host1', helloOf(2, 'host2:3888'));
    ensemble.advance(50);
    one.takeTold();
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
    ensemble.advance(900);
    expect([one.takeTold(), two.closed]).toEqual([[], []]);
    ensemble.advance(200);
    expect(one.takeTold()).toEqual(['connected 2', '2 says 4']);
    expect(two.closed).toEqual(['reset by peer']);
  });

  it('a second connection of a higher id takes the place at once when the first is closed, or owed an answer for long', () => {
    for (const isClosed of [true, false]) {
      const ensemble = new LinkedServers(makeMembership([1, 2]));
      const one = ensemble.start(1);
      const two = new Stranger(ensemble.network, 'host2');
      ensemble.advance(10);
      two.connect('host1', helloOf(2, 'host2:3888'));
      ensemble.advance(50);
      if (!isClosed) {
        one.links.send(2, makeWord(1));
        ensemble.advance(1000);
      }
      one.takeTold();
      two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
      ensemble.advance(50);
      if (isClosed) two.streams[0]?.destroy();
      ensemble.advance(50);
      expect(one.takeTold()).toEqual(['connected 2', '2 says 4']);
    }
  });

  it('who claims the id of a server of ours that is connected is refused, and whatever he says is not heard', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3]));
    const servers = [1, 2, 3].map((id) => ensemble.start(id));
    for (const { links } of servers) for (const to of [1, 2, 3]) links.send(to, { ...makeWord(7), announces: 1 });
    // Nobody has anything to say any more.
    ensemble.advance(10_000);
    for (const server of servers) server.takeTold();
    const stranger = new Stranger(ensemble.network, 'stranger');
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 20; i++) stranger.connect('host2', helloOf(3, 'stranger:3888'), bytesOf(frameOf(99)));
      // A lower id calls: the real one would be dialled anew.
      stranger.connect('host2', helloOf(1, 'host1:3888'));
      ensemble.advance(3000);
    }
    expect(servers.map((server) => server.takeTold())).toEqual([[], [], []]);
    expect(stranger.closed).toHaveLength(105);
    expect(servers[1]?.traced.at(-1)).toMatchObject({
      kind: 'connection-refused',
      reason: expect.stringMatching(
        /on the election port: it says that it is server 3, and that one is connected already/,
      ),
    });
    for (const id of [1, 3]) expect(ensemble.streamsBetween(2, id)).toBe(1);
  });

  it('a server of ours that has lost its connection without a word is back within a second, also among strangers', () => {
    const ensemble = new LinkedServers(makeMembership([1, 3]));
    const one = ensemble.start(1);
    const three = ensemble.start(3);
    for (const { links } of [one, three]) for (const to of [1, 3]) links.send(to, { ...makeWord(7), announces: 1 });
    ensemble.advance(10_000);
    ensemble.crash(3, true);
    one.takeTold();
    const stranger = new Stranger(ensemble.network, 'stranger');
    for (let i = 0; i < 3; i++) stranger.connect('host1', helloOf(3, 'stranger:3888'));
    const again = ensemble.start(3);
    again.links.send(1, { ...makeWord(8), announces: 1 });
    // One second for each that was there before it, and is silent.
    ensemble.advance(5000);
    again.links.send(1, { ...makeWord(9), announces: 1 });
    ensemble.advance(100);
    expect(one.heard.get(3)).toBe(9);
    expect(ensemble.streamsBetween(1, 3)).toBe(1);
  });

  it('servers that dial each other at once do not replace what they have', () => {
    let crossings = 0;
    for (let seed = 1; seed <= 100; seed++) {
      const ensemble = new LinkedServers(makeMembership([1, 2]), seed, { delayMaxMs: 150 });
      const servers = [2, 1].map((id) => ensemble.start(id));
      ensemble.advance(20_000);
      for (const { told } of servers) expect(told.filter((what) => what.startsWith('connected'))).toHaveLength(1);
      if (ensemble.network.dials.length > 1) crossings++;
    }
    expect(crossings).toBeGreaterThan(50);
  });

  it('a hello and frames may come byte by byte', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]), 1, { chunkBytesMax: 1 });
    const one = ensemble.start(1);
    ensemble.advance(10);
    const two = new Stranger(ensemble.network, 'host2');
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)), bytesOf(frameOf(5)));
    ensemble.advance(1500);
    expect(one.takeTold().filter((what) => !what.startsWith('unreachable'))).toEqual([
      'connected 2',
      '2 says 4',
      '2 says 5',
    ]);
  });

  it('one that says that it is this server is closed', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const twin = new Stranger(ensemble.network, 'twin');
    twin.connect('host1', helloOf(1, 'host1:3888'));
    ensemble.advance(100);
    expect(twin.closed).toEqual(['reset by peer']);
    expect(one.connected.size).toBe(0);
  });

  it('an observer dials the voters, and nobody dials an observer', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3], [2]));
    for (const id of [1, 2, 3]) ensemble.start(id);
    ensemble.advance(3000);
    expect(ensemble.network.dials).not.toContain('host1>host2:3888');
    for (const id of [1, 2, 3]) expect(ensemble.servers.get(id)?.connected.size).toBe(2);
  });
});

it('an observer of the lowest id is authenticated to by whoever dials it (ZOOKEEPER-4886)', () => {
  const ensemble = new LinkedServers(makeMembership([1, 2, 3], [1]));
  let logins = 0;
  ensemble.peerAuthentication = {
    isRequired: true,
    startInitiator: () => ({
      start: () => Uint8Array.of(1),
      step: () => ({ kind: 'success', token: null, identities: [] }),
    }),
    startAcceptor: () => ({
      step: () => {
        logins++;
        return { kind: 'success', token: Uint8Array.of(2), identities: [] };
      },
    }),
  };
  for (const id of [1, 2, 3]) ensemble.start(id);
  ensemble.advance(3000);
  for (const id of [1, 2, 3]) expect(ensemble.servers.get(id)?.connected.size).toBe(2);
  // 1 calls 2 and 3 and is dialled back; 2 calls 3, or 3 dials 2.
  expect(logins).toBeGreaterThanOrEqual(5);
});

describe('what is sent', () => {
  it('waits for the connection, the newest alone, and is said again over a new one', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = ensemble.start(2);
    for (const round of [1, 2, 3]) two.links.send(1, makeWord(round));
    ensemble.advance(1000);
    const one = ensemble.start(1);
    ensemble.advance(2000);
    expect(one.takeTold().filter((what) => what.startsWith('2'))).toEqual(['2 says 3']);
    ensemble.network.breakStreams('host1', 'host2');
    ensemble.advance(5000);
    expect(one.takeTold()).toEqual(['unreachable 2', 'connected 2', '2 says 3']);
  });

  it('does not queue behind what a peer has not taken: the newest follows (ZOOKEEPER-880, 822)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]), 1, { windowBytes: 10 });
    const one = ensemble.start(1);
    const two = ensemble.start(2);
    ensemble.advance(3000);
    for (let round = 1; round <= 50; round++) two.links.send(1, makeWord(round));
    ensemble.advance(1000);
    expect(one.takeTold().filter((what) => what.startsWith('2'))).toEqual(['2 says 1', '2 says 50']);
  });
});

describe('a server with several addresses', () => {
  const BOTH = makeMembership([1, 2], [], [1, 2]);

  /** From now on nothing passes between the first addresses, and nobody is told. */
  function cutFirstAddresses({ network }: LinkedServers): void {
    for (const pair of ['host1>host2', 'host2>host1']) network.blackHoles.add(pair);
  }

  it('says all of them when it dials', () => {
    const ensemble = new LinkedServers(BOTH);
    const one = new Stranger(ensemble.network, 'host1');
    one.listen();
    ensemble.start(2);
    ensemble.advance(100);
    expect(Uint8Array.from(one.received)).toEqual(
      bytesOf((b) => b.long(-65535).long(2).text('host2:3888|host2b:3888')),
    );
  });

  it('is dialled at the next one when the first answers nothing, and counts as reachable', () => {
    const ensemble = new LinkedServers(BOTH);
    ensemble.network.blackHoles.add('host2>host1');
    const one = ensemble.start(1);
    const two = ensemble.start(2);
    ensemble.advance(ADDRESS_TIMEOUT_MS + 100);
    expect(two.takeTold()).toEqual(['connected 1']);
    expect([...one.connected]).toEqual([2]);
    // The one that has answered comes first from now on.
    ensemble.network.dials.length = 0;
    ensemble.network.breakStreams('host1b', 'host2');
    ensemble.advance(3000);
    expect(ensemble.network.dials.filter((dial) => dial.startsWith('host2'))).toEqual(['host2>host1b:3888']);
    expect([...two.connected]).toEqual([1]);
  });

  it('is dialled back at the next one when it calls from the lower id', () => {
    const ensemble = new LinkedServers(BOTH);
    const two = ensemble.start(2);
    two.links.stop();
    ensemble.advance(10);
    const called = new LinkedServer(ensemble, 2);
    ensemble.servers.set(2, called);
    called.links.start();
    ensemble.network.blackHoles.add('host2>host1');
    ensemble.start(1);
    ensemble.advance(2 * ADDRESS_TIMEOUT_MS + 100);
    expect(called.takeTold()).toEqual(['connected 1']);
  });

  it('counts as unreachable once every address has failed', () => {
    const ensemble = new LinkedServers(BOTH);
    const two = ensemble.start(2);
    ensemble.advance(60);
    expect(ensemble.network.dials).toHaveLength(2);
    expect(two.takeTold()).toEqual(['unreachable 1']);
  });

  it.each([1, 2])('is reached again by the other one when server %i asks and the way has gone', (asking) => {
    const ensemble = new LinkedServers(BOTH);
    const servers = [ensemble.start(1), ensemble.start(2)];
    ensemble.advance(6000);
    cutFirstAddresses(ensemble);
    const [asker, asked] = asking === 1 ? servers : servers.toReversed();
    asker!.links.send(3 - asking, makeWord(7));
    ensemble.advance(1500);
    expect(asked!.heard.get(asking)).toBeUndefined();
    ensemble.advance(4000);
    expect(asked!.heard.get(asking)).toBe(7);
    expect(ensemble.streamsBetween(1, 2)).toBe(1);
  });

  it('keeps its connection when it answers, or need not', () => {
    const ensemble = new LinkedServers(BOTH);
    const servers = [ensemble.start(1), ensemble.start(2)] as const;
    ensemble.advance(6000);
    const { length } = ensemble.network.dials;
    for (let round = 1; round < 5; round++) {
      servers[0].links.send(2, makeWord(round));
      ensemble.advance(100);
      servers[1].links.send(1, { ...makeWord(round), state: ServerState.leading });
      ensemble.advance(5000);
    }
    expect(ensemble.network.dials).toHaveLength(length);
  });
});

describe('what goes wrong', () => {
  it('a connection that breaks at the other end is traced; one that this server closes is not', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    const two = ensemble.start(2);
    ensemble.advance(100);
    const lost = (server: LinkedServer) => server.traced.filter(({ kind }) => kind === 'peer-lost');
    expect(lost(one)).toEqual([]);
    two.links.stop();
    ensemble.advance(100);
    expect(lost(one)).toEqual([{ kind: 'peer-lost', serverId: 2, reason: 'reset by peer' }]);
    expect(lost(two)).toEqual([]);
  });

  it('a listener that cannot listen tries again for ever (ZOOKEEPER-3320)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    ensemble.network.unlistenable.add('host1:3888');
    const one = ensemble.start(1);
    ensemble.start(2);
    ensemble.advance(90_000);
    expect(one.connected.size).toBe(0);
    expect(one.traced.filter(({ kind }) => kind === 'warning')).toHaveLength(2);
    ensemble.network.unlistenable.clear();
    ensemble.advance(10_000);
    expect([...one.connected]).toEqual([2]);
  });

  it('a peer that swallows everything delays no other (ZOOKEEPER-2930, 3756)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3, 4]));
    for (const id of [1, 2, 3]) ensemble.network.blackHoles.add(`host${id}>host4`);
    for (const id of [1, 2, 3]) ensemble.start(id);
    ensemble.advance(1500);
    for (const id of [1, 2, 3]) expect(ensemble.servers.get(id)?.connected.size, `server ${id}`).toBe(2);
    expect(ensemble.servers.get(1)?.told).not.toContain('unreachable 4');
    ensemble.advance(5000);
    expect(ensemble.servers.get(1)?.told).toContain('unreachable 4');
  });

  it('a peer that refuses is dialled again, at first soon, then every few seconds', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    ensemble.start(2);
    ensemble.advance(1000);
    const soon = ensemble.network.dials.length;
    expect(soon).toBeGreaterThanOrEqual(3);
    ensemble.advance(100_000);
    expect(ensemble.network.dials.length).toBeGreaterThan(20);
    expect(ensemble.network.dials.length).toBeLessThan(50);
  });

  it('one that called and is not dialled back calls again, and the peer counts as unreachable', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    new Stranger(ensemble.network, 'host2').listen();
    const one = ensemble.start(1);
    ensemble.advance(4000);
    expect(one.told).toContain('unreachable 2');
    expect(ensemble.network.dials.length).toBeGreaterThan(1);
  });

  it('fifty connections that say nothing harm nobody, and are closed in time (ZOOKEEPER-3296)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const silent = new Stranger(ensemble.network, 'silent');
    for (let i = 0; i < 50; i++) silent.connect('host1');
    for (let i = 0; i < 5; i++) silent.connect('host1', helloOf(2, 'host2:3888').subarray(0, 4 * i));
    ensemble.advance(10);
    ensemble.start(2);
    ensemble.advance(2000);
    expect([...one.connected]).toEqual([2]);
    ensemble.advance(5000);
    expect(silent.closed).toHaveLength(55);
    expect([...one.connected]).toEqual([2]);
  });

  it('of connections that say nothing only so many are kept', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    ensemble.start(1);
    ensemble.advance(10);
    const silent = new Stranger(ensemble.network, 'silent');
    for (let i = 0; i < 300; i++) silent.connect('host1');
    ensemble.advance(100);
    expect(silent.closed).toHaveLength(300 - 256);
  });

  it('where there is no room, those that say nothing give way to those that come, and strangers to members', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const stranger = new Stranger(ensemble.network, 'stranger');
    stranger.connect('host1', helloOf(77, 'stranger:3888'));
    ensemble.advance(100);
    expect([...one.connected]).toEqual([77]);
    ensemble.network.crowded.add('host1:3888');
    for (let i = 0; i < 20; i++) stranger.connect('host1');
    ensemble.advance(100);
    // The first of them has no one to take the place of but the stranger with a name.
    expect(stranger.closed).toHaveLength(20);
    ensemble.start(2);
    ensemble.advance(3000);
    expect([...one.connected]).toEqual([2]);
    expect(stranger.closed).toHaveLength(21);
    for (let i = 0; i < 20; i++) stranger.connect('host1');
    ensemble.advance(3000);
    expect([...one.connected]).toEqual([2]);
  });

  it('what is no hello closes its connection (ZOOKEEPER-3769, 2186)', () => {
    const bad = [
      bytesOf((b) => b.long(-65537).long(2)),
      bytesOf((b) => b.long(-65536).long(2).int(-5)),
      bytesOf((b) => b.long(-65536).long(2).int(2049)),
      helloOf(-2, 'host2:3888'),
      helloOf(2n ** 63n - 1n, 'host2:3888'),
      helloOf(2, 'host2'),
      helloOf(2, 'host2:99999'),
      bytesOf((b) => b.raw(new TextEncoder().encode('\x80GET / HTTP/1.1\r\nHost: host1\r\n\r\n'))),
    ];
    for (const bytes of bad) {
      const ensemble = new LinkedServers(makeMembership([1, 2]));
      const one = ensemble.start(1);
      ensemble.advance(10);
      const stranger = new Stranger(ensemble.network, 'stranger');
      stranger.connect('host1', bytes);
      ensemble.advance(200);
      expect(stranger.closed).toHaveLength(1);
      expect(one.connected.size).toBe(0);
      expect(one.traced.filter(({ kind }) => kind === 'connection-refused')).toHaveLength(1);
    }
  });

  it('who speaks TLS where it is not spoken is told of as such', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    new Stranger(ensemble.network, 'stranger').connect('host1', Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3));
    ensemble.advance(200);
    expect(one.traced).toContainEqual(
      expect.objectContaining({
        kind: 'connection-refused',
        reason: expect.stringMatching(/on the election port: it speaks TLS, and this port does not/),
      }),
    );
  });

  it('a frame of an impossible length ends its connection; one that holds no notification does not', () => {
    for (const length of [0, -1, -(2 ** 31), 524_289, 2 ** 31 - 1]) {
      const ensemble = new LinkedServers(makeMembership([1, 2]));
      const one = ensemble.start(1);
      ensemble.advance(10);
      const two = new Stranger(ensemble.network, 'host2');
      const nonsense = bytesOf((b) => frameOf(9)(b.int(5).raw([1, 2, 3, 4, 5]).int(1).byte(7)));
      two.connect('host1', helloOf(2, 'host2:3888'), nonsense);
      ensemble.advance(200);
      expect(one.heard.get(2)).toBe(9);
      expect(two.closed).toEqual([]);
      two.streams[0]?.write(bytesOf((b) => b.int(length)));
      ensemble.advance(200);
      expect(two.closed).toEqual(['reset by peer']);
      expect(one.connected.size).toBe(0);
    }
  });

  it('a server outside the membership is heard and answered, but only so many of them are', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const joiner = new Stranger(ensemble.network, 'joiner');
    joiner.connect('host1', helloOf(77, 'joiner:3888'), bytesOf(frameOf(5)));
    ensemble.advance(100);
    expect(one.heard.get(77)).toBe(5);
    one.links.send(77, makeWord(6));
    ensemble.advance(100);
    expect(Uint8Array.from(joiner.received)).toEqual(bytesOf(frameOf(6)));

    for (let id = 1000; id < 1100; id++) joiner.connect('host1', helloOf(id, 'joiner:3888'));
    ensemble.advance(200);
    expect(one.connected.size).toBe(64);
    for (const stream of joiner.streams) stream.destroy();
    ensemble.advance(200);
    expect(one.connected.size).toBe(0);
    joiner.connect('host1', helloOf(78, 'joiner:3888'));
    ensemble.advance(100);
    expect([...one.connected]).toEqual([78]);
  });

  it('nothing is told and nothing happens once the links are stopped', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3]));
    const one = ensemble.start(1);
    ensemble.start(2);
    ensemble.advance(2000);
    one.takeTold();
    one.links.stop();
    one.links.send(2, makeWord(1));
    one.links.connectAll();
    ensemble.advance(100);
    const dials = ensemble.network.dials.filter((dial) => dial.startsWith('host1')).length;
    ensemble.advance(20_000);
    expect(one.takeTold()).toEqual([]);
    expect(one.links.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
    expect(ensemble.network.dials.filter((dial) => dial.startsWith('host1'))).toHaveLength(dials);
    expect(ensemble.streamsBetween(2, 1)).toBe(0);
  });
});

it('whatever befalls them, servers end up with one connection between every two, which carries the last word', () => {
  const fault = fc.record({
    kind: fc.constantFrom('break', 'crash', 'crash silently', 'swallow', 'heal', 'deafen', 'call', 'stranger'),
    a: fc.nat(2),
    b: fc.nat(2),
    afterMs: fc.oneof(fc.nat(50), fc.nat(3000)),
  });
  const start = fc.array(fc.nat(400), { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom([1, 2], [1, 2, 3], [5, 3, 4]),
      fc.subarray([1, 2, 3, 4, 5]),
      start,
      fc.constantFrom(0, 5, 300),
      fc.constantFrom(0, 1),
      fc.array(fault, { maxLength: 12 }),
      (seed, ids, several, startMs, delayMaxMs, announces, faults) => {
        const membership = makeMembership(
          [...ids].sort((a, b) => a - b),
          [],
          several,
        );
        const ensemble = new LinkedServers(membership, seed, { delayMaxMs });
        const { network } = ensemble;
        for (const [i, id] of ids.entries()) {
          ensemble.advance(startMs[i]!);
          const { links } = ensemble.start(id);
          for (const to of ids) links.send(to, { ...makeWord(id), announces });
        }
        for (const { kind, a, b, afterMs } of faults) {
          const one = ids[a % ids.length]!;
          const other = ids[b % ids.length]!;
          if (kind === 'break') network.breakStreams(`host${one}`, `host${other}`);
          else if (kind === 'swallow') network.blackHoles.add(`host${one}>host${other}`);
          else if (kind === 'heal') network.blackHoles.clear();
          else if (kind === 'deafen') network.unlistenable.add(`host${one}:3888`);
          else if (kind === 'call') ensemble.servers.get(one)?.links.connectAll();
          else if (kind === 'stranger') {
            new Stranger(network, 'stranger').connect(`host${one}`, helloOf(other, `host${other}:3888`));
          } else {
            ensemble.crash(one, kind === 'crash silently');
            ensemble.advance(afterMs);
            ensemble.start(one);
          }
          ensemble.advance(afterMs);
        }
        network.blackHoles.clear();
        network.unlistenable.clear();
        ensemble.advance(30_000);
        for (const server of ensemble.servers.values()) {
          for (const id of ids) server.links.send(id, { ...makeWord(100 + server.id), announces });
        }
        ensemble.advance(70_000);
        for (const server of ensemble.servers.values()) {
          const others = ids.filter((id) => id !== server.id).sort((x, y) => x - y);
          expect([...server.connected].sort((x, y) => x - y)).toEqual(others);
          for (const id of others) {
            expect(ensemble.streamsBetween(server.id, id)).toBe(1);
            expect(server.heard.get(id)).toBe(100 + id);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});
