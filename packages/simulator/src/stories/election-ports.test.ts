/** Rows of the catalogue about the ensemble's ports: strangers, other programs that hold them, cut links. */
import { describe, expect, test } from 'vitest';
import { ELECTION_PORT, QUORUM_PORT } from '../virtual-ensemble.ts';
import { play } from './stage.ts';

describe('an ensemble', () => {
  test('3296, 3769, 2186, 547: elects while strangers connect to its ports and say nothing, or nonsense', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      const random = stage.world.random.fork('strangers');
      const connect = (host: string, port: number, bytes: Uint8Array | null): void => {
        const end = stage.world.network.connect('stranger', host, port, {
          onOpen: () => {
            if (bytes !== null) end.write(bytes);
          },
          onFailed() {},
          onBytes() {},
          onDrain() {},
          onClosed() {},
        });
      };
      stage.cutPower(zk3);
      for (const { host } of [zk1, zk2]) {
        for (const port of [ELECTION_PORT, QUORUM_PORT]) {
          for (let i = 0; i < 50; i++) connect(host, port, null);
          for (let i = 0; i < 50; i++) {
            connect(
              host,
              port,
              Uint8Array.from({ length: random.between(1, 200) }, () => random.between(0, 255)),
            );
          }
          // Lengths that are negative, or longer than the data.
          connect(host, port, Uint8Array.of(0xff, 0xff, 0xff, 0xff));
          connect(host, port, Uint8Array.of(0x7f, 0xff, 0xff, 0xff, 0, 0));
        }
      }
      const lostMs = stage.world.nowMs;
      const next = await stage.leader(zk1, zk2);
      expect(stage.world.nowMs - lostMs).toBeLessThan(3000);
      await stage.write(next, 2);
    }));

  test.each([ELECTION_PORT, QUORUM_PORT])(
    '3320, 3084, 2836: takes in a server that could not listen at port %i for a while, without a restart',
    (port) =>
      play({ servers: 3 }, async (stage) => {
        const [zk1, zk2, zk3] = stage.three;
        // Another program holds the port.
        const giveWay = stage.world.network.listen('zk3', port, (end) => end.destroy());
        for (const server of stage.servers) server.start();
        await stage.sleep(10_000);
        giveWay();
        await stage.whole(zk1, zk2, zk3);
        expect(zk3.life).toBe(1);
      }),
  );

  test('is not won by a server whose quorum port another program holds, until it releases it', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const { network } = stage.world;
      const giveWay = network.listen('zk3', QUORUM_PORT, (end) => end.destroy());
      await stage.launch();
      const startMs = stage.world.nowMs;
      const first = await stage.leader();
      expect(first).not.toBe(zk3);
      expect(stage.world.nowMs - startMs).toBeLessThan(1000);
      await stage.whole();
      await stage.write(zk3, 3);
      // Its vote is still needed, and it still votes.
      stage.kill(zk1);
      await stage.write(zk3, 3);
      stage.kill(zk2);
      zk1.start();
      // What it and server 2 have acknowledged is unknown to server 1, so no server can lead.
      await stage.sleep(5000);
      expect([zk1.isServing, zk3.isServing]).toEqual([false, false]);
      const freeMs = stage.world.nowMs;
      giveWay();
      expect(await stage.leader()).toBe(zk3);
      expect(stage.world.nowMs - freeMs).toBeLessThan(1500);
      await stage.whole();
    }));

  test('follows when a serving leader loses its quorum port, unless it soon gets it back', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const { network } = stage.world;
      network.closeListener(leader.host, QUORUM_PORT);
      await stage.until('it listens again', () => network.isListening(leader.host, QUORUM_PORT));
      const { epoch } = leader;
      await stage.sleep(20_000);
      expect([(await stage.leader()).host, leader.epoch]).toEqual([leader.host, epoch]);
      const follower = stage.servers.find((server) => server !== leader)!;
      network.closeListener(leader.host, QUORUM_PORT);
      const giveWay = network.listen(leader.host, QUORUM_PORT, (end) => end.destroy());
      stage.kill(follower);
      follower.start();
      await stage.until('another one leads', () =>
        stage.servers.some((each) => each !== leader && each.role === 'leading'),
      );
      await stage.whole();
      await stage.write(leader, 3);
      giveWay();
    }));

  test('does not follow when a leader without its quorum port has no possible successor', () =>
    play({ servers: 1, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const { network } = stage.world;
      network.closeListener(leader.host, QUORUM_PORT);
      const giveWay = network.listen(leader.host, QUORUM_PORT, (end) => end.destroy());
      const { epoch } = leader;
      await stage.sleep(20_000);
      await stage.write(leader);
      expect(leader.epoch).toBe(epoch);
      giveWay();
    }));

  test.each([0, 1])('continues over the other address of each server when address %i is cut', (address) =>
    play({ servers: 3, addresses: 2, ensemble: { addressTimeoutMs: 200 } }, async (stage) => {
      const leader = await stage.start();
      await stage.write(leader, 2);
      const lostMs = stage.world.nowMs;
      // No end is notified: packets wait, and connections stay open.
      for (const { host } of stage.servers) {
        stage.world.network.blockPort(host, QUORUM_PORT + address);
        stage.world.network.blockPort(host, ELECTION_PORT + address);
      }
      await stage.write(leader, 2);
      // syncLimit, half a second here, then the silence on the election links.
      expect(stage.world.nowMs - lostMs).toBeLessThan(6000);
      await stage.whole();
    }),
  );
});
