/** Historic defects around changes of the membership, other than in the change itself (`reconfig.test.ts`). */
import { type Client, ReconfigDisabledError, type ReconfigOptions } from '@meerkat/client';
import { formatMember, type Member, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { ELECTION_PORT, makeMembership, portKindOf } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { play, type Stage } from './stage.ts';

const SHAPE = { servers: 3, spares: 2 };

/** A client that may change the members. */
function operate(stage: Stage, server?: VirtualServer): Promise<Client> {
  const servers = server === undefined ? {} : { servers: `${server.host}:${server.port}` };
  return stage.connect('operator', { ...servers, auth: [{ scheme: 'digest', auth: 'super:super' }] });
}

function memberOf(id: number): Member {
  return makeMembership(5).members[id - 1]!;
}

function line(id: number, changes: Partial<Member> = {}): string {
  return formatMember({ ...memberOf(id), ...changes });
}

function ask(client: Client, change: ReconfigOptions): Promise<boolean> {
  return client.reconfig(change).then(
    () => true,
    () => false,
  );
}

function idsAt(server: VirtualServer): readonly number[] {
  return server.core?.view.ensemble?.membership.members.map(({ serverId }) => serverId) ?? [];
}

/** Longer than a server takes to write its membership files. */
const FILES_MS = 50;

/** Sends bytes to a port, and reads nothing. */
function say(stage: Stage, server: VirtualServer, port: number, bytes: Uint8Array): void {
  const end = stage.world.network.connect('stranger', server.host, port, {
    onOpen: () => end.write(bytes),
    onFailed() {},
    onBytes() {},
    onDrain() {},
    onClosed() {},
  });
}

/** Version −65536, id and address of the server that connects. */
function helloOf(id: number): Uint8Array {
  return bytesOf((list) => list.long(-65536).long(id).text('stranger:3888'));
}

describe('the membership', () => {
  test('2212: is not taken over from what others say while a server follows', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const behind = [stage.zk(1), stage.zk(2), stage.zk(3)].find((server) => server !== leader)!;
      const four = stage.zk(4);
      const operator = await operate(stage, leader);
      void stage.cut(leader, behind, { type: PacketType.commitAndActivate });
      await operator.reconfig({ joining: [line(4)] });
      await stage.sleep(FILES_MS);
      stage.kill(four);
      await stage.sleep(1);
      // It looks for a leader, and thereby sends every voter its membership.
      four.start();
      await stage.until('it follows again', () => four.isServing, 300);
      expect([behind.role, idsAt(behind), idsAt(four)]).toEqual(['following', [1, 2, 3], [1, 2, 3, 4]]);
      await operator.close();
    }));

  test('2080, 2778: changes while many others connect to the election ports', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const operator = await operate(stage);
      let changes = 0;
      const done = Promise.all([
        operator.reconfig({ joining: [line(4)] }).then(() => changes++),
        (async () => {
          for (let i = 0; i < 100; i++) {
            for (const server of stage.servers) {
              // Members, which are connected already, and others.
              say(stage, server, ELECTION_PORT, helloOf(i % 2 === 0 ? 1 + (i % 5) : 100 + i));
            }
            await stage.sleep(1);
          }
        })(),
      ]);
      await stage.until('the change is answered', () => changes === 1, 2000);
      await done;
      stage.kill(leader);
      await stage.leader(...stage.servers.filter((server) => server !== leader));
      await operator.close();
    }));

  test('3829, 3830, 2819: grows by a restart of each server where reconfig is off, and a newcomer can lead', () =>
    // The checkers know of no other voters than the first three.
    play({ servers: 3, spares: 1, core: { reconfigEnabled: false }, excused: ['R6'] }, async (stage) => {
      const [four, ...three] = [stage.zk(4), ...stage.three] as const;
      const leader = await stage.start(...three);
      await stage.write(leader, 20);
      four.start();
      await stage.whole();
      const inOrder = [...three.filter((server) => server !== leader), leader];
      for (const server of inOrder) {
        stage.kill(server);
        Object.assign(server.options.ensemble!, { membership: makeMembership(4) });
        await stage.leader(...stage.servers.filter((other) => other !== server));
        server.start();
        await stage.whole();
      }
      while ((await stage.leader()) !== four) {
        const other = await stage.leader();
        stage.kill(other);
        await stage.leader(...stage.servers.filter((server) => server !== other));
        other.start();
        await stage.whole();
      }
      for (const server of stage.servers) {
        await stage.write(server);
        const { data } = await (await stage.at(server)).config();
        expect(new TextDecoder().decode(data)).toContain('server.4=');
      }
      const operator = await operate(stage);
      await expect(operator.reconfig({ leaving: [1] })).rejects.toBeInstanceOf(ReconfigDisabledError);
      await operator.close();
    }));

  test('2865: is the same everywhere although all servers die before they have written their files', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const operator = await operate(stage);
      const others = stage.servers.filter((server) => server !== leader);
      const deaths = others.map((server) =>
        stage.packet({ type: PacketType.commitAndActivate, to: server, stage: 'received' }).then(() => {
          stage.kill(server);
          stage.kill(leader);
        }),
      );
      void ask(operator, { joining: [line(4)] });
      await Promise.race(deaths);
      stage.kill(...stage.servers);
      await stage.launch();
      await stage.whole();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3, 4]);
      await stage.sleep(FILES_MS);
      stage.cutPower(...stage.servers);
      await stage.launch();
      await stage.whole();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3, 4]);
      await operator.close();
    }));

  test('1840, 1807: has servers at other ports and new observers, and no server dials itself or without need', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const operator = await operate(stage);
      const moves = [1, 2, 3].find((id) => id !== leader.serverId)!;
      const addresses = memberOf(moves).addresses.map(({ host }) => ({ host, quorumPort: 2889, electionPort: 3889 }));
      const dials = dialsOf(stage);
      await operator.reconfig({
        joining: [line(moves, { addresses }), line(4, { role: 'observer' }), line(5, { role: 'observer' })],
      });
      await stage.whole();
      stage.kill(stage.zk(moves));
      await stage.sleep(100);
      stage.zk(moves).start();
      await stage.whole();
      await stage.sleep(2000);
      dials.begin();
      await stage.sleep(10_000);
      expect(dials.ofItself).toEqual([]);
      expect(dials.inCalm).toEqual([]);
      await operator.close();
    }));

  test('RethinkDB 2.2.3: counts a server that came back with an empty disk by what it has since received', () =>
    play({ servers: 5, core: { reconfigEnabled: true } }, async (stage) => {
      const cutOff = await stage.start();
      const [wiped, ...rest] = stage.servers.filter((server) => server !== cutOff) as [
        VirtualServer,
        ...VirtualServer[],
      ];
      await stage.write(cutOff, 3);
      stage.isolate(cutOff, wiped);
      await stage.leader(...rest);
      const operator = await operate(stage);
      await operator.reconfig({ leaving: [wiped.serverId] });
      wiped.wipe();
      wiped.start();
      await stage.write(rest[0]!, 5);
      await operator.reconfig({ joining: [line(wiped.serverId)] });
      await stage.sleep(3000);
      expect([cutOff.isServing, wiped.isServing]).toEqual([false, false]);
      stage.heal();
      await stage.whole();
      // Without it, two of five are left.
      stage.kill(...rest.slice(0, 2));
      const next = await stage.leader(cutOff, wiped, ...rest.slice(2));
      await stage.write(next, 3);
      expect(idsAt(next)).toEqual([1, 2, 3, 4, 5]);
      await operator.close();
    }));

  test('4247, 1789: may be missing from the notifications of old releases, whatever the role', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const [follower, alone] = [stage.zk(1), stage.zk(2), stage.zk(3)].filter((server) => server !== leader);
      stage.isolate(alone!);
      await stage.until('one is looking', () => alone!.role === 'looking');
      const roles = [leader, follower!, alone!, stage.zk(4)].map(({ role }) => role);
      expect(roles).toEqual(['leading', 'following', 'looking', 'observing']);
      for (const server of stage.servers) {
        for (let state = 0; state < 4; state++) {
          for (const from of [1, 2, 3, 9].filter((id) => id > server.serverId)) {
            say(
              stage,
              server,
              ELECTION_PORT,
              bytesOf((list) => list.raw(helloOf(from)).raw(oldVote(state, from, false))),
            );
            say(
              stage,
              server,
              ELECTION_PORT,
              bytesOf((list) => list.raw(helloOf(from)).raw(oldVote(state, from, true))),
            );
            await stage.sleep(2);
          }
        }
      }
      expect(stage.servers.map(({ isRunning }) => isRunning)).toEqual([true, true, true, true]);
      expect(await stage.leader()).toBe(leader);
    }));
});

/** A vote of release 3.2, of 28 bytes, or of 3.4, which knows of epochs. */
function oldVote(state: number, leader: number, hasEpoch: boolean): Uint8Array {
  const vote = bytesOf((list) => {
    const short = list.int(state).long(leader).long(0x100000001).long(7);
    return hasEpoch ? short.long(1).int(1) : short;
  });
  return bytesOf((list) => list.buffer(vote));
}

interface Dials {
  /** From now on no server has a reason to dial. */
  begin(): void;
  readonly ofItself: readonly string[];
  readonly inCalm: readonly string[];
}

/** Connections to election ports. */
function dialsOf({ world: { network } }: Stage): Dials {
  const { tap } = network;
  const ofItself: string[] = [];
  const inCalm: string[] = [];
  let isCalm = false;
  network.tap = {
    onOpen: (connection, dialler, host, port) => {
      if (portKindOf(port) === 'election') {
        if (dialler === host) ofItself.push(`${host}:${port}`);
        if (isCalm) inCalm.push(`${dialler} dials ${host}:${port}`);
      }
      tap?.onOpen(connection, dialler, host, port);
    },
    onBytes: (connection, from, stage, bytes) => tap?.onBytes(connection, from, stage, bytes),
    onClose: (connection) => tap?.onClose(connection),
  };
  return {
    begin: () => {
      isCalm = true;
    },
    ofItself,
    inCalm,
  };
}
