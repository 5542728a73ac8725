import { ServerState } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { makeNotification } from '../testing/election-words.ts';
import { ADDRESS_TIMEOUT_MS, LinkedServer, LinkedServers, makeMembership } from '../testing/linked-servers.ts';
import { RawPeer } from '../testing/raw-peer.ts';

describe('a server with several addresses', () => {
  const BOTH = makeMembership([1, 2], [], [1, 2]);

  /** From now on all packets between the first addresses are dropped, without an error. */
  function cutFirstAddresses({ network }: LinkedServers): void {
    for (const pair of ['host1>host2', 'host2>host1']) network.blackHoles.add(pair);
  }

  it('announces all of them when it dials', () => {
    const ensemble = new LinkedServers(BOTH);
    const one = new RawPeer(ensemble.network, 'host1');
    one.listen();
    ensemble.start(2);
    ensemble.advance(100);
    expect(Uint8Array.from(one.received)).toEqual(
      bytesOf((b) => b.long(-65535).long(2).text('host2:3888|host2b:3888')),
    );
  });

  it('is dialled at the next one when the first does not answer, and counts as reachable', () => {
    const ensemble = new LinkedServers(BOTH);
    ensemble.network.blackHoles.add('host2>host1');
    const one = ensemble.start(1);
    const two = ensemble.start(2);
    ensemble.advance(ADDRESS_TIMEOUT_MS + 100);
    expect(two.takeEvents()).toEqual(['connected 1']);
    expect([...one.connected]).toEqual([2]);
    // The address that has answered comes first from now on.
    ensemble.network.dials.length = 0;
    ensemble.network.breakStreams('host1b', 'host2');
    ensemble.advance(3000);
    expect(ensemble.network.dials.filter((dial) => dial.startsWith('host2'))).toEqual(['host2>host1b:3888']);
    expect([...two.connected]).toEqual([1]);
  });

  it('is dialled back at the next one when it has the lower id', () => {
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
    expect(called.takeEvents()).toEqual(['connected 1']);
  });

  it('counts as unreachable once every address has failed', () => {
    const ensemble = new LinkedServers(BOTH);
    const two = ensemble.start(2);
    ensemble.advance(60);
    expect(ensemble.network.dials).toHaveLength(2);
    expect(two.takeEvents()).toEqual(['unreachable 1']);
  });

  it.each([1, 2])('is reached again at its other address when server %i asks and the first route is lost', (asking) => {
    const ensemble = new LinkedServers(BOTH);
    const servers = [ensemble.start(1), ensemble.start(2)];
    ensemble.advance(6000);
    cutFirstAddresses(ensemble);
    const [asker, asked] = asking === 1 ? servers : servers.toReversed();
    asker!.links.send(3 - asking, makeNotification(7));
    ensemble.advance(1500);
    expect(asked!.notifiedEpochs.get(asking)).toBeUndefined();
    ensemble.advance(4000);
    expect(asked!.notifiedEpochs.get(asking)).toBe(7);
    expect(ensemble.streamsBetween(1, 2)).toBe(1);
  });

  it('is reached again when the only route left is the one that had answered', () => {
    const ensemble = new LinkedServers(BOTH);
    const two = new LinkedServer(ensemble, 2);
    ensemble.servers.set(2, two);
    two.links.start();
    ensemble.network.blackHoles.add('host1>host2');
    const one = ensemble.start(1);
    // Server 1 reaches the second address of server 2, which dials back to the first one of server 1.
    ensemble.advance(ADDRESS_TIMEOUT_MS + 1);
    ensemble.network.blackHoles.clear();
    ensemble.advance(5000);
    expect(one.takeEvents()).toEqual(['connected 2']);
    cutFirstAddresses(ensemble);
    one.links.send(2, makeNotification(7));
    ensemble.advance(10_000);
    expect(two.notifiedEpochs.get(1)).toBe(7);
  });

  it('is asked again at every address for as long as it is silent', () => {
    const ensemble = new LinkedServers(BOTH);
    const [one, two] = [ensemble.start(1), ensemble.start(2)];
    ensemble.advance(6000);
    const second = ['host1>host2b', 'host2>host1b'];
    cutFirstAddresses(ensemble);
    for (const pair of second) ensemble.network.blackHoles.add(pair);
    one.links.send(2, makeNotification(7));
    ensemble.advance(20_000);
    expect(two.notifiedEpochs.get(1)).toBeUndefined();
    for (const pair of second) ensemble.network.blackHoles.delete(pair);
    ensemble.advance(10_000);
    expect(two.notifiedEpochs.get(1)).toBe(7);
    expect(ensemble.streamsBetween(1, 2)).toBe(1);
  });

  it('keeps its connection when it answers, or need not answer', () => {
    const ensemble = new LinkedServers(BOTH);
    const servers = [ensemble.start(1), ensemble.start(2)] as const;
    ensemble.advance(6000);
    const { length } = ensemble.network.dials;
    for (let round = 1; round < 5; round++) {
      servers[0].links.send(2, makeNotification(round));
      ensemble.advance(100);
      servers[1].links.send(1, { ...makeNotification(round), state: ServerState.leading });
      ensemble.advance(5000);
    }
    expect(ensemble.network.dials).toHaveLength(length);
  });
});
