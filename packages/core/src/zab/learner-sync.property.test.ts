import { makeZxid, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatPair, parsePair } from '../testing/history-text.ts';
import { TestLeader } from '../testing/test-leader.ts';
import { isNext } from './recent-log.ts';

/**
 * Histories as Zab makes them: the leader of each epoch began with a prefix of the history of an earlier one, and added
 * its own txns. A server has a prefix of the history of one epoch.
 */
interface World {
  /** For each epoch, the initial history of its leader and its proposals. */
  readonly lines: readonly (readonly Zxid[])[];
  readonly leader: readonly Zxid[];
  readonly learner: readonly Zxid[];
}

const anyWorld: fc.Arbitrary<World> = fc
  .tuple(
    fc.array(fc.record({ parent: fc.nat(), kept: fc.nat(12), own: fc.nat(6) }), { minLength: 1, maxLength: 5 }),
    fc.record({ line: fc.nat(), length: fc.nat(25) }),
    fc.record({ line: fc.nat(), length: fc.nat(25) }),
  )
  .map(([epochs, leader, learner]) => {
    const lines: Zxid[][] = [[]];
    for (const [i, { parent, kept, own }] of epochs.entries()) {
      const begun = lines[parent % lines.length]!.slice(0, kept);
      lines.push([...begun, ...Array.from({ length: own }, (_, n) => makeZxid(i + 1, n + 1))]);
    }
    const prefix = ({ line, length }: { line: number; length: number }): readonly Zxid[] =>
      lines[line % lines.length]!.slice(0, length);
    return { lines, leader: prefix(leader), learner: prefix(learner) };
  });

const EPOCH = 9;

test('any learner ends up with the history of the leader', () => {
  const modes = new Map<string, number>();
  fc.assert(
    fc.property(
      anyWorld,
      fc.record({ memory: fc.nat(8), logFrom: fc.nat(20), readBatch: fc.integer({ min: 2, max: 5 }), live: fc.nat(3) }),
      (world, { memory, logFrom, readBatch, live }) => {
        const last = world.leader.at(-1) ?? makeZxid(0, 0);
        const test = new TestLeader({
          serverId: 1,
          quorum: { voters: [1] },
          history: world.leader.map(formatPair).join(' '),
          memory,
          // The log is complete, or begins somewhere in the middle.
          logFrom: logFrom === 0 || world.leader.length === 0 ? null : formatPair(world.leader[logFrom] ?? last),
          currentEpoch: EPOCH - 1,
          acceptedEpoch: EPOCH - 1,
        });
        test.readBatch = readBatch;
        test.start();
        test.disk();
        expect(test.leader.phase).toBe('broadcast');
        test.propose(live);
        test.disk();
        test.take();

        test.connect(2);
        test.info(2, EPOCH - 1);
        test.ackEpoch(2, formatPair(world.learner.at(-1) ?? makeZxid(0, 0)), EPOCH - 1);
        test.disk();
        test.propose(1);

        const full = [...world.leader, ...Array.from({ length: live + 1 }, (_, n) => makeZxid(EPOCH, n + 1))];
        const result = new Replay(world.learner, full.slice(0, -1));
        for (const { to, text } of test.take()) if (to === 2) result.play(text);
        expect(result.history).toEqual(full);
        expect(result.isNewLeaderSent).toBe(true);
        modes.set(result.mode, (modes.get(result.mode) ?? 0) + 1);
      },
    ),
    { numRuns: 2000, seed: 11 },
  );
  expect([...modes.keys()].sort()).toEqual(['DIFF', 'SNAP', 'TRUNC']);
});

/** A learner that follows its instructions and checks their invariants. */
class Replay {
  history: readonly Zxid[];
  mode = '';
  isNewLeaderSent = false;
  readonly #snapshot: readonly Zxid[];

  constructor(history: readonly Zxid[], snapshot: readonly Zxid[]) {
    this.history = history;
    this.#snapshot = snapshot;
  }

  play(text: string): void {
    const [packet = '', pair = ''] = text.split(' ');
    switch (packet) {
      case 'LEADERINFO':
      case 'COMMIT':
        return;
      case 'DIFF':
        this.#begin(packet);
        return;
      case 'TRUNC': {
        this.#begin(packet);
        const index = this.history.indexOf(parsePair(pair));
        expect(index, 'a learner truncates to a txn that it has').toBeGreaterThanOrEqual(0);
        expect(index, 'a learner truncates something').toBeLessThan(this.history.length - 1);
        this.history = this.history.slice(0, index + 1);
        return;
      }
      case 'SNAP':
        this.#begin(packet);
        this.history = this.#snapshot;
        return;
      case 'PROPOSAL': {
        const zxid = parsePair(pair);
        expect(this.mode, 'how it catches up comes first').not.toBe('');
        expect(isNext(this.history.at(-1) ?? makeZxid(0, 0), zxid), `${pair} leaves no gap`).toBe(true);
        this.history = [...this.history, zxid];
        return;
      }
      case 'NEWLEADER':
        expect(this.history, 'NEWLEADER stands behind the history').toEqual(this.#snapshot);
        this.isNewLeaderSent = true;
        return;
      default:
        throw new Error(`the learner is sent ${text}`);
    }
  }

  #begin(mode: string): void {
    expect(this.mode, 'how it catches up is said once').toBe('');
    this.mode = mode;
  }
}
