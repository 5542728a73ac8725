import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { frameOf, helloOf, makeNotification } from '../testing/election-words.ts';
import { LinkedServer, LinkedServers, makeMembership } from '../testing/linked-servers.ts';
import { RawPeer } from '../testing/raw-peer.ts';

describe('establishing a connection', () => {
  it('the higher id dials, sends its id and address, and then frames', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new RawPeer(ensemble.network, 'host1');
    one.listen();
    const two = ensemble.start(2);
    two.links.send(1, makeNotification(7));
    ensemble.advance(100);
    expect(Uint8Array.from(one.received)).toEqual(
      bytesOf((b) => frameOf(7)(b.long(-65536).long(2).text('host2:3888'))),
    );
    expect(one.closed).toEqual([]);
    expect(two.takeEvents()).toEqual(['connected 1']);
  });

  it('the lower id dials, sends its hello, closes, and is dialled back', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = new RawPeer(ensemble.network, 'host2');
    two.listen();
    const one = ensemble.start(1);
    one.links.send(2, makeNotification(3));
    ensemble.advance(100);
    expect(Uint8Array.from(two.received)).toEqual(helloOf(1, 'host1:3888'));
    expect(two.closed).toEqual(['closed by peer']);
    expect(one.takeEvents()).toEqual([]);

    two.received.length = 0;
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
    ensemble.advance(100);
    expect(one.takeEvents()).toEqual(['connected 2', '2 says 4']);
    expect(Uint8Array.from(two.received)).toEqual(bytesOf(frameOf(3)));
    expect(ensemble.network.dials).toEqual(['host1>host2:3888', 'host2>host1:3888']);
  });

  it('a lower id that asks for it is dialled back at the address that it announces', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new RawPeer(ensemble.network, 'elsewhere');
    one.listen(4000);
    const two = new LinkedServer(ensemble, 2);
    two.links.start();
    ensemble.advance(10);
    one.connect('host2', helloOf(1, 'elsewhere:4000'));
    ensemble.servers.set(2, two);
    ensemble.advance(100);
    expect(ensemble.network.dials).toEqual(['elsewhere>host2:3888', 'host2>elsewhere:4000']);
    expect(two.takeEvents()).toEqual(['connected 1']);
    expect(one.closed).toEqual(['reset by peer']);
  });

  it('a server that announces 0.0.0.0 is dialled at its configured address (ZOOKEEPER-2164, 3725)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = new LinkedServer(ensemble, 2);
    ensemble.servers.set(2, two);
    two.links.start();
    ensemble.advance(10);
    new RawPeer(ensemble.network, 'elsewhere').connect('host2', helloOf(1, '0.0.0.0:3888'));
    ensemble.advance(100);
    expect(ensemble.network.dials.slice(1)).toEqual(['host2>host1:3888']);
    expect(two.takeEvents()).toEqual(['unreachable 1']);
  });

  it('a lower id that asks again has lost its connection, which is replaced', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = new RawPeer(ensemble.network, 'host1');
    one.listen();
    const two = ensemble.start(2);
    ensemble.advance(10_000);
    expect(two.takeEvents()).toEqual(['connected 1']);
    one.connect('host2', helloOf(1, 'host1:3888'));
    ensemble.advance(100);
    expect(two.takeEvents()).toEqual(['connected 1']);
    expect(one.closed).toEqual(['reset by peer', 'reset by peer']);
    expect(ensemble.streamsBetween(2, 1)).toBe(1);
  });

  it('a second connection of a higher id waits for a second, and then replaces a silent first one', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    const two = new RawPeer(ensemble.network, 'host2');
    ensemble.advance(10);
    two.connect('host1', helloOf(2, 'host2:3888'));
    ensemble.advance(50);
    one.takeEvents();
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
    ensemble.advance(900);
    expect([one.takeEvents(), two.closed]).toEqual([[], []]);
    ensemble.advance(200);
    expect(one.takeEvents()).toEqual(['connected 2', '2 says 4']);
    expect(two.closed).toEqual(['reset by peer']);
  });

  it('a third connection of a higher id has its turn when the second one is silent as well', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    const two = new RawPeer(ensemble.network, 'host2');
    ensemble.advance(10);
    for (const frames of [[], [], [bytesOf(frameOf(4))]]) {
      two.connect('host1', helloOf(2, 'host2:3888'), ...frames);
      ensemble.advance(50);
    }
    one.takeEvents();
    ensemble.advance(1000);
    expect(one.takeEvents()).toEqual(['connected 2']);
    ensemble.advance(1000);
    expect(one.takeEvents()).toEqual(['connected 2', '2 says 4']);
  });

  it('a second connection of a higher id replaces the first at once if it is closed or its answer is overdue', () => {
    for (const isClosed of [true, false]) {
      const ensemble = new LinkedServers(makeMembership([1, 2]));
      const one = ensemble.start(1);
      const two = new RawPeer(ensemble.network, 'host2');
      ensemble.advance(10);
      two.connect('host1', helloOf(2, 'host2:3888'));
      ensemble.advance(50);
      if (!isClosed) {
        one.links.send(2, makeNotification(1));
        ensemble.advance(1000);
      }
      one.takeEvents();
      two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)));
      ensemble.advance(50);
      if (isClosed) two.streams[0]?.destroy();
      ensemble.advance(50);
      expect(one.takeEvents()).toEqual(['connected 2', '2 says 4']);
    }
  });

  it('a stranger with the id of a connected Meerkat server is refused, and its notifications are ignored', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3]));
    const servers = [1, 2, 3].map((id) => ensemble.start(id));
    for (const { links } of servers)
      for (const to of [1, 2, 3]) links.send(to, { ...makeNotification(7), announces: 1 });
    // All servers become silent.
    ensemble.advance(10_000);
    for (const server of servers) server.takeEvents();
    const stranger = new RawPeer(ensemble.network, 'stranger');
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 20; i++) stranger.connect('host2', helloOf(3, 'stranger:3888'), bytesOf(frameOf(99)));
      // A lower id asks to be dialled back, which would replace the real connection.
      stranger.connect('host2', helloOf(1, 'host1:3888'));
      ensemble.advance(3000);
    }
    expect(servers.map((server) => server.takeEvents())).toEqual([[], [], []]);
    expect(stranger.closed).toHaveLength(105);
    expect(servers[1]?.traced.at(-1)).toMatchObject({
      kind: 'connection-refused',
      reason: expect.stringMatching(
        /on the election port: it claims to be server 3, and that one is connected already/,
      ),
    });
    for (const id of [1, 3]) expect(ensemble.streamsBetween(2, id)).toBe(1);
  });

  it('a Meerkat server with a silently broken connection is back within a second, also among strangers', () => {
    const ensemble = new LinkedServers(makeMembership([1, 3]));
    const one = ensemble.start(1);
    const three = ensemble.start(3);
    for (const { links } of [one, three])
      for (const to of [1, 3]) links.send(to, { ...makeNotification(7), announces: 1 });
    ensemble.advance(10_000);
    ensemble.crash(3, true);
    one.takeEvents();
    const stranger = new RawPeer(ensemble.network, 'stranger');
    for (let i = 0; i < 3; i++) stranger.connect('host1', helloOf(3, 'stranger:3888'));
    const again = ensemble.start(3);
    again.links.send(1, { ...makeNotification(8), announces: 1 });
    // One second for each stranger that came before it and is silent.
    ensemble.advance(5000);
    again.links.send(1, { ...makeNotification(9), announces: 1 });
    ensemble.advance(100);
    expect(one.notifiedEpochs.get(3)).toBe(9);
    expect(ensemble.streamsBetween(1, 3)).toBe(1);
  });

  it('a server that is no member and announces no address leaves nothing behind', () => {
    const ensemble = new LinkedServers(makeMembership([200]));
    ensemble.start(200);
    const strangers = new RawPeer(ensemble.network, 'stranger');
    for (let id = 1; id <= 100; id++) strangers.connect('host200', helloOf(id, '0.0.0.0:3888'));
    ensemble.advance(5000);
    const joining = new RawPeer(ensemble.network, 'joining');
    joining.listen();
    joining.connect('host200', helloOf(101, 'joining:3888'));
    ensemble.advance(100);
    expect(ensemble.network.dials.at(-1)).toBe('host200>joining:3888');
  });

  it('servers that dial each other at the same time do not replace their connection', () => {
    let crossings = 0;
    for (let seed = 1; seed <= 100; seed++) {
      const ensemble = new LinkedServers(makeMembership([1, 2]), seed, { delayMaxMs: 150 });
      const servers = [2, 1].map((id) => ensemble.start(id));
      ensemble.advance(20_000);
      for (const { events } of servers) expect(events.filter((what) => what.startsWith('connected'))).toHaveLength(1);
      if (ensemble.network.dials.length > 1) crossings++;
    }
    expect(crossings).toBeGreaterThan(50);
  });

  it('a hello and frames may arrive byte by byte', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]), 1, { chunkBytesMax: 1 });
    const one = ensemble.start(1);
    ensemble.advance(10);
    const two = new RawPeer(ensemble.network, 'host2');
    two.connect('host1', helloOf(2, 'host2:3888'), bytesOf(frameOf(4)), bytesOf(frameOf(5)));
    ensemble.advance(1500);
    expect(one.takeEvents().filter((what) => !what.startsWith('unreachable'))).toEqual([
      'connected 2',
      '2 says 4',
      '2 says 5',
    ]);
  });

  it('a connection with the id of this server is closed', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const twin = new RawPeer(ensemble.network, 'twin');
    twin.connect('host1', helloOf(1, 'host1:3888'));
    ensemble.advance(100);
    expect(twin.closed).toEqual(['reset by peer']);
    expect(one.connected.size).toBe(0);
  });

  it('an observer dials the voters, and no server dials an observer', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3], [2]));
    for (const id of [1, 2, 3]) ensemble.start(id);
    ensemble.advance(3000);
    expect(ensemble.network.dials).not.toContain('host1>host2:3888');
    for (const id of [1, 2, 3]) expect(ensemble.servers.get(id)?.connected.size).toBe(2);
  });
});

it('servers that dial an observer with the lowest id authenticate to it (ZOOKEEPER-4886)', () => {
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
  // 1 dials 2 and 3 and is dialled back; 2 dials 3, or 3 dials 2.
  expect(logins).toBeGreaterThanOrEqual(5);
});

describe('a notification', () => {
  it('waits for the connection, only the newest, and is resent over a new one', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const two = ensemble.start(2);
    for (const round of [1, 2, 3]) two.links.send(1, makeNotification(round));
    ensemble.advance(1000);
    const one = ensemble.start(1);
    ensemble.advance(2000);
    expect(one.takeEvents().filter((what) => what.startsWith('2'))).toEqual(['2 says 3']);
    ensemble.network.breakStreams('host1', 'host2');
    ensemble.advance(5000);
    expect(one.takeEvents()).toEqual(['unreachable 2', 'connected 2', '2 says 3']);
  });

  it('does not queue behind unsent ones: only the newest follows (ZOOKEEPER-880, 822)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]), 1, { windowBytes: 10 });
    const one = ensemble.start(1);
    const two = ensemble.start(2);
    ensemble.advance(3000);
    for (let round = 1; round <= 50; round++) two.links.send(1, makeNotification(round));
    ensemble.advance(1000);
    expect(one.takeEvents().filter((what) => what.startsWith('2'))).toEqual(['2 says 1', '2 says 50']);
  });
});
