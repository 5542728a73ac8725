import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { frameOf, helloOf, makeNotification } from '../testing/election-words.ts';
import { type LinkedServer, LinkedServers, makeMembership } from '../testing/linked-servers.ts';
import { RawPeer } from '../testing/raw-peer.ts';

describe('faults', () => {
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

  it('a listener that cannot listen retries forever (ZOOKEEPER-3320)', () => {
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

  it('an unresponsive peer delays no other (ZOOKEEPER-2930, 3756)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3, 4]));
    for (const id of [1, 2, 3]) ensemble.network.blackHoles.add(`host${id}>host4`);
    for (const id of [1, 2, 3]) ensemble.start(id);
    ensemble.advance(1500);
    for (const id of [1, 2, 3]) expect(ensemble.servers.get(id)?.connected.size, `server ${id}`).toBe(2);
    expect(ensemble.servers.get(1)?.events).not.toContain('unreachable 4');
    ensemble.advance(5000);
    expect(ensemble.servers.get(1)?.events).toContain('unreachable 4');
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

  it('a server that is not dialled back asks again, and the peer counts as unreachable', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    new RawPeer(ensemble.network, 'host2').listen();
    const one = ensemble.start(1);
    ensemble.advance(4000);
    expect(one.events).toContain('unreachable 2');
    expect(ensemble.network.dials.length).toBeGreaterThan(1);
  });

  it('fifty silent connections have no effect on others, and are closed in time (ZOOKEEPER-3296)', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const silent = new RawPeer(ensemble.network, 'silent');
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

  it('the number of silent connections is bounded', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    ensemble.start(1);
    ensemble.advance(10);
    const silent = new RawPeer(ensemble.network, 'silent');
    for (let i = 0; i < 300; i++) silent.connect('host1');
    ensemble.advance(100);
    expect(silent.closed).toHaveLength(300 - 256);
  });

  it('without room, new connections replace silent ones, and members replace strangers', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const stranger = new RawPeer(ensemble.network, 'stranger');
    stranger.connect('host1', helloOf(77, 'stranger:3888'));
    ensemble.advance(100);
    expect([...one.connected]).toEqual([77]);
    ensemble.network.crowded.add('host1:3888');
    for (let i = 0; i < 20; i++) stranger.connect('host1');
    ensemble.advance(100);
    // The first of them can only replace the stranger with an id.
    expect(stranger.closed).toHaveLength(20);
    ensemble.start(2);
    ensemble.advance(3000);
    expect([...one.connected]).toEqual([2]);
    expect(stranger.closed).toHaveLength(21);
    for (let i = 0; i < 20; i++) stranger.connect('host1');
    ensemble.advance(3000);
    expect([...one.connected]).toEqual([2]);
  });

  it('an invalid hello closes its connection (ZOOKEEPER-3769, 2186)', () => {
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
      const stranger = new RawPeer(ensemble.network, 'stranger');
      stranger.connect('host1', bytes);
      ensemble.advance(200);
      expect(stranger.closed).toHaveLength(1);
      expect(one.connected.size).toBe(0);
      expect(one.traced.filter(({ kind }) => kind === 'connection-refused')).toHaveLength(1);
    }
  });

  it('TLS on a plaintext port is reported as such', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    new RawPeer(ensemble.network, 'stranger').connect('host1', Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3));
    ensemble.advance(200);
    expect(one.traced).toContainEqual(
      expect.objectContaining({
        kind: 'connection-refused',
        reason: expect.stringMatching(/on the election port: it speaks TLS, and this port does not/),
      }),
    );
  });

  it('a frame of an invalid length closes its connection; one without a valid notification does not', () => {
    for (const length of [0, -1, -(2 ** 31), 524_289, 2 ** 31 - 1]) {
      const ensemble = new LinkedServers(makeMembership([1, 2]));
      const one = ensemble.start(1);
      ensemble.advance(10);
      const two = new RawPeer(ensemble.network, 'host2');
      const nonsense = bytesOf((b) => frameOf(9)(b.int(5).raw([1, 2, 3, 4, 5]).int(1).byte(7)));
      two.connect('host1', helloOf(2, 'host2:3888'), nonsense);
      ensemble.advance(200);
      expect(one.notifiedEpochs.get(2)).toBe(9);
      expect(two.closed).toEqual([]);
      two.streams[0]?.write(bytesOf((b) => b.int(length)));
      ensemble.advance(200);
      expect(two.closed).toEqual(['reset by peer']);
      expect(one.connected.size).toBe(0);
    }
  });

  it('servers outside the membership may exchange notifications, up to a maximum', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2]));
    const one = ensemble.start(1);
    ensemble.advance(10);
    const joiner = new RawPeer(ensemble.network, 'joiner');
    joiner.connect('host1', helloOf(77, 'joiner:3888'), bytesOf(frameOf(5)));
    ensemble.advance(100);
    expect(one.notifiedEpochs.get(77)).toBe(5);
    one.links.send(77, makeNotification(6));
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

  it('stopped links have no events and do not dial', () => {
    const ensemble = new LinkedServers(makeMembership([1, 2, 3]));
    const one = ensemble.start(1);
    ensemble.start(2);
    ensemble.advance(2000);
    one.takeEvents();
    one.links.stop();
    one.links.send(2, makeNotification(1));
    one.links.connectAll();
    ensemble.advance(100);
    const dials = ensemble.network.dials.filter((dial) => dial.startsWith('host1')).length;
    ensemble.advance(20_000);
    expect(one.takeEvents()).toEqual([]);
    expect(one.links.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
    expect(ensemble.network.dials.filter((dial) => dial.startsWith('host1'))).toHaveLength(dials);
    expect(ensemble.streamsBetween(2, 1)).toBe(0);
  });
});
