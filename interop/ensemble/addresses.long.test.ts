/**
 * Servers with several addresses (docs/zab.md, "Servers with several addresses"), together with Apache's, which check
 * the list. Covers four of the nine tests about several addresses in Apache's own suite.
 */
import { expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { freePort, type ServerKind } from '../harness/server-process.ts';
import { Ensemble } from './ensemble.ts';
import { connectTo } from './workload.ts';

/** Reserved for names that do not exist (RFC 6761). */
const UNKNOWN = 'no-such-host.invalid';

/** Hosts of the two addresses of each server, and the kinds of the servers. The last one leads first. */
const CASES: readonly (readonly [string, readonly [string, string], readonly ServerKind[]])[] = [
  ['an address of IPv4 and one of IPv6 each', ['127.0.0.1', '[::1]'], ['meerkat', 'apache', 'meerkat']],
  ['an unknown name before an address', [UNKNOWN, '127.0.0.1'], ['meerkat', 'apache', 'meerkat']],
  ['an address of IPv6 before an unknown name', ['[::1]', UNKNOWN], ['apache', 'meerkat', 'apache']],
];

describeWith(['apache'], "servers of ours and of Apache's that have", () => {
  test.each(CASES)('%s form an ensemble, and each rejoins it', async (_, hosts, kinds) => {
    const list: Record<string, string> = {};
    for (const i of kinds.keys()) {
      const addresses: string[] = [];
      for (const host of hosts) addresses.push(`${host}:${await freePort()}:${await freePort()}`);
      list[`server.${i + 1}`] = addresses.join('|');
    }
    const ensemble = await Ensemble.start(
      kinds.map((kind) => ({ kind })),
      { ...list, 'multiAddress.enabled': true },
    );
    onTestFailed(() => console.log(ensemble.logs));
    try {
      let count = 0;
      const expectToWork = async (): Promise<void> => {
        const path = `/written-${count++}`;
        for (const [i, member] of ensemble.members.entries()) {
          await using client = await connectTo(member);
          if (i === 0) await client.create(path);
          else await client.sync();
          expect(await client.exists(path)).not.toBeNull();
        }
      };
      await expectToWork();
      // The one that leads, and one of the other kind.
      const leader = await ensemble.leader();
      const other = ensemble.members.find(({ server }) => server.kind !== leader.server.kind)!;
      for (const { server } of [leader, other]) {
        await server.restart();
        await expectToWork();
      }
    } finally {
      await ensemble.dispose();
    }
  });
});
