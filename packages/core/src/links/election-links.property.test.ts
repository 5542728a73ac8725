import fc from 'fast-check';
import { expect, it } from 'vitest';
import { helloOf, makeNotification } from '../testing/election-words.ts';
import { LinkedServers, makeMembership } from '../testing/linked-servers.ts';
import { RawPeer } from '../testing/raw-peer.ts';

it('after any faults, every two servers end up with one connection, which carries the last notification', () => {
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
      fc.array(fault, { maxLength: 12, size: 'max' }),
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
          for (const to of ids) links.send(to, { ...makeNotification(id), announces });
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
            new RawPeer(network, 'stranger').connect(`host${one}`, helloOf(other, `host${other}:3888`));
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
          for (const id of ids) server.links.send(id, { ...makeNotification(100 + server.id), announces });
        }
        ensemble.advance(70_000);
        for (const server of ensemble.servers.values()) {
          const others = ids.filter((id) => id !== server.id).sort((x, y) => x - y);
          expect([...server.connected].sort((x, y) => x - y)).toEqual(others);
          for (const id of others) {
            expect(ensemble.streamsBetween(server.id, id)).toBe(1);
            expect(server.notifiedEpochs.get(id)).toBe(100 + id);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});
