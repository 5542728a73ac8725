import { ConnectionLossError } from '@meerkat/client';
import { getInt, PacketType, putInt } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { play, type Stage } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';

/** Newest last. */
function filesOf(server: VirtualServer, prefix: 'log.' | 'snapshot.'): readonly string[] {
  const { logDirectory } = server.options;
  const zxidOf = (name: string): number => Number.parseInt(name.slice(prefix.length), 16);
  const names = server.disk.names(logDirectory).filter((name) => name.startsWith(prefix));
  return names.toSorted((a, b) => zxidOf(a) - zxidOf(b)).map((name) => `${logDirectory}/${name}`);
}

/** Where the last record of a log file begins, and where it ends: `(8 bytes checksum, int length, payload, 'B')*`. */
function lastRecordOf(bytes: Uint8Array): { readonly start: number; readonly end: number } {
  let start = 16;
  let end = 16;
  while (end + 12 < bytes.length && getInt(bytes, end + 8) > 0) {
    start = end;
    end += 12 + getInt(bytes, end + 8) + 1;
  }
  return { start, end };
}

/** What a crash may leave behind the last record that was synced. */
const TAILS: Readonly<Record<string, (record: Uint8Array, at: number) => Uint8Array>> = {
  'a record that is cut in the middle': (record) => record.subarray(0, record.length >> 1),
  'a length and nothing else': (record) => record.subarray(0, 12),
  'a long record, one unit of which the device has not written': (record, at) => {
    const long = new Uint8Array(2000).fill(7);
    long.set(record.subarray(0, 8));
    putInt(long, 8, long.length - 13);
    long[long.length - 1] = 0x42;
    const unit = (Math.ceil((at + 12) / 512) + 1) * 512 - at;
    return long.fill(0, unit, unit + 512);
  },
  'a record without its last byte': (record) => record.subarray(0, record.length - 1),
  'more zeros than it was grown by': () => new Uint8Array(100_000),
  nothing: () => new Uint8Array(0),
};

describe('a log that ends with', () => {
  test.each(Object.entries(TAILS))(
    '882, 596: %s yields each of its txns once, and is continued behind the last',
    (_what, tailOf) =>
      play({ servers: 3 }, async (stage) => {
        const leader = await stage.start();
        const follower = stage.servers.find((server) => server !== leader)!;
        const client = await stage.at(leader);
        await client.create('/x');
        for (let i = 0; i < 5; i++) await client.create('/x/n-', '', { sequential: true });
        await stage.whole();
        for (let round = 0; round < 3; round++) {
          stage.cutPower(follower);
          const path = filesOf(follower, 'log.').at(-1)!;
          const bytes = follower.disk.peek(path)!;
          const { start, end } = lastRecordOf(bytes);
          const tail = tailOf(bytes.subarray(start, end), end);
          const whole = new Uint8Array(Math.max(bytes.length, end + tail.length));
          whole.set(bytes.subarray(0, end));
          whole.set(tail, end);
          follower.disk.poke(path, whole);
          // With the others, and with only one of them: the second time its own log has to suffice.
          if (round === 1) stage.kill(stage.servers.find((server) => server !== leader && server !== follower)!);
          follower.start();
          await stage.whole();
          await client.create('/x/n-', '', { sequential: true });
          await stage.whole();
        }
        expect((await client.children('/x')).children.length).toBe(8);
        await expectSameTrees(stage);
      }),
  );
});

/** A snapshot ends with the path of the root. */
function hasEnd(bytes: Uint8Array): boolean {
  return getInt(bytes, bytes.length - 5) === 1 && bytes.at(-1) === 0x2f;
}

/** The server begins a snapshot. */
function begun(stage: Stage, server: VirtualServer): Promise<void> {
  return new Promise((resolve) => {
    stage.world.watch({
      onTrace: (from, { kind }) => {
        if (from === server && kind === 'snapshot-started') resolve();
      },
    });
  });
}

/** Writes until a server has taken this many more snapshots. */
async function takeSnapshots(stage: Stage, server: VirtualServer, leader: VirtualServer, count: number): Promise<void> {
  const client = await stage.at(leader);
  let left = count;
  stage.world.watch({
    onTrace: (from, { kind }) => {
      if (from === server && kind === 'snapshot-written') left--;
    },
  });
  for (let i = 0; left > 0; i++) {
    await client.set('/count', String(i)).catch((error: unknown) => {
      if (!(error instanceof ConnectionLossError)) throw error;
    });
  }
}

describe('snapshots', () => {
  test('3231: that are truncated do not count when old ones are purged, so that the last whole one always stays', () =>
    play(
      { servers: 3, core: { snapCount: 8, purgeRetainCount: 3, purgeIntervalMs: 60 }, mayFail: [1, 2, 3] },
      async (stage) => {
        const leader = await stage.start();
        const follower = stage.servers.find((server) => server !== leader)!;
        const { disk } = follower;
        const cut = (paths: readonly string[]): void => {
          for (const path of paths) disk.poke(path, disk.peek(path)!.slice(0, -5));
        };
        await (await stage.at(leader)).create('/count');
        await takeSnapshots(stage, follower, leader, 5);
        for (let round = 0; round < 3; round++) {
          // The two newest of the three that are kept.
          cut(filesOf(follower, 'snapshot.').slice(-2));
          await takeSnapshots(stage, follower, leader, 1);
          await stage.sleep(100);
        }
        cut(filesOf(follower, 'snapshot.').slice(-3));
        await stage.sleep(200);
        await stage.whole();
        stage.kill(follower);
        // One of the rest rots in a way that a purge does not see, as it only reads the ends.
        const whole = filesOf(follower, 'snapshot.').filter((path) => hasEnd(disk.peek(path)!));
        expect(whole.length).toBeGreaterThan(1);
        disk.flipBit(whole.at(-1)!, 50, 1);
        follower.start();
        await stage.whole();
        expect(follower.failure).toBeNull();
        await expectSameTrees(stage);
      },
    ));

  test('3082: that a full disk truncates leave no empty file, however often the server is restarted', () =>
    play({ servers: 3, core: { snapCount: 8 }, mayFail: [1, 2, 3], seeds: [1, 2] }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const client = await stage.at(leader);
      await client.create('/count');
      let isToBeFilled = false;
      stage.world.watch({
        onTrace: (server, { kind }) => {
          if (server === follower && kind === 'snapshot-started' && isToBeFilled) follower.disk.fill();
        },
      });
      for (let round = 0; round < 4; round++) {
        await takeSnapshots(stage, follower, leader, 1);
        // The disk fills up in the middle of a snapshot, or at any time.
        isToBeFilled = round % 2 === 0;
        if (!isToBeFilled) follower.disk.fill();
        for (let i = 0; i < 20; i++) await client.set('/count', `${round} ${i}`);
        await stage.until('it has found its disk full', () => !follower.isRunning || follower.failure !== null);
        isToBeFilled = false;
        // It is started while the disk is still full, too.
        follower.start();
        await stage.sleep(10 * round);
        stage.kill(follower);
        follower.healDisk();
        // It may also be killed in the middle of a snapshot that it could have finished.
        follower.start();
        await stage.whole();
        const hasBegun = begun(stage, follower);
        for (let i = 0; i < 12; i++) await client.set('/count', `${round} ${i} again`);
        await hasBegun;
        await stage.sleep(0.2 * round);
        stage.kill(follower);
        for (const path of filesOf(follower, 'snapshot.')) {
          expect([path, follower.disk.peek(path)!.length]).toEqual([
            path,
            expect.toSatisfy((length: number) => length > 400),
          ]);
        }
        follower.start();
        await stage.whole();
      }
      await expectSameTrees(stage);
    }));

  test('3531: for a slow learner delay no other server, and are followed by all that was written meanwhile', () =>
    play({ servers: 3, ensemble: { commitLogCount: 4, snapshotSizeFactor: -1 } }, async (stage) => {
      const leader = await stage.start();
      const late = stage.servers.find((server) => server !== leader)!;
      const client = await stage.at(leader);
      await stage.whole();
      stage.kill(late);
      for (let i = 0; i < 8; i++) await client.create(`/ballast-${i}`, 'b'.repeat(200_000));
      stage.world.network.slowDown(leader.host, late.host, {
        delayMinMs: 1,
        delayMaxMs: 2,
        splitChance: 0,
        mergeChance: 0,
        bytesPerMs: 8000,
      });
      const snap = stage.packet({ from: leader, to: late, type: PacketType.snap });
      late.start();
      await snap;
      // Also with ACLs and sessions that are newer than what is being sent.
      const beganMs = stage.world.nowMs;
      for (let i = 0; i < 20; i++)
        await client.create(`/new-${i}`, '', { mode: i % 2 === 0 ? 'ephemeral' : 'persistent' });
      expect(stage.world.nowMs - beganMs).toBeLessThan(20 * 8);
      expect(late.isServing).toBe(false);
      stage.world.network.heal();
      await stage.whole();
      await expectSameTrees(stage);
      stage.cutPower(late);
      late.start();
      await expectSameTrees(stage);
    }));
});
