/** Forged packets, damaged files and lost disks must not harm an ensemble. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { afterEach, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Ensemble, hasLogged, type Member, THREADED, wipe } from './ensemble.ts';
import { followerInfo, notification, type PretendedVote, RawPeer } from './raw-peer.ts';
import { connectTo } from './workload.ts';

const MEERKAT = { kind: 'meerkat' } as const;

describe('three servers of ours', () => {
  let ensemble: Ensemble;

  beforeEach(async () => {
    // With reconfig enabled, and one server with an I/O thread: neither may matter here.
    ensemble = await Ensemble.start([MEERKAT, THREADED, MEERKAT], { reconfigEnabled: true });
    onTestFailed(() => console.log(ensemble.logs));
  });
  afterEach(() => ensemble?.dispose());

  test('keep a follower whose id a stranger claims, and clients keep writing without a gap', async () => {
    const leader = await ensemble.leader();
    const [follower, other] = ensemble.members.filter((member) => member !== leader);
    // Without the follower there is no quorum.
    await other!.server.kill();
    await using client = await connect(`127.0.0.1:${leader.server.port}`, { sessionTimeoutMs: 20_000 });
    await client.create('/written');
    const states: string[] = [];
    client.onState(({ state }) => states.push(state));
    const gaps: number[] = [];
    for (let i = 0; i < 5; i++) {
      const packet = followerInfo({ serverId: follower!.id, acceptedEpoch: 1 });
      const stranger = await RawPeer.say(leader.quorumPort, packet);
      let isClosed = false;
      void stranger.closed.then(() => {
        isClosed = true;
      });
      while (!isClosed) {
        const before = performance.now();
        await client.set('/written', String(i));
        gaps.push(performance.now() - before);
      }
      expect(stranger.received).toHaveLength(0);
    }
    console.log(`slowest of ${gaps.length} writes: ${Math.max(...gaps).toFixed(0)} ms`);
    // Without a quorum the leader would have disconnected its clients.
    expect(states).toEqual([]);
    expect(await ensemble.modeOf(follower!)).toBe('follower');
    await expect.poll(() => leader.server.output).toMatch(/is connected already, and that connection is alive/);
  });

  test('keep the election link of a server whose id a stranger claims, and accept it after a crash', async () => {
    const [one, , three] = ensemble.members as [Member, Member, Member];
    const pretend = (): Promise<RawPeer> =>
      RawPeer.say(
        one.electionPort,
        notification(3, { state: 'looking', leader: 3, zxid: 0n, round: 9n, peerEpoch: 0n }),
      );
    for (let i = 0; i < 5; i++) {
      const stranger = await pretend();
      await stranger.closed;
      expect(stranger.received).toHaveLength(0);
    }
    // The log line arrives independently of the closed connection, and is rate-limited to one per second.
    const refusal = /on the election port: it claims to be server 3, and that one is connected already/;
    await until(() => refusal.test(one.server.output));
    // A stranger that connects first while it is down has to prove that it is alive when the server returns.
    await three.server.kill();
    const strangers = await Promise.all([pretend(), pretend()]);
    await three.server.restart();
    await until(async () => (await ensemble.modeOf(three)) !== null);
    const stranger = await pretend();
    await stranger.closed;
    for (const each of strangers) each.close();
  });

  test('accept a killed follower again at once, and one that was paused for longer than syncLimit', async () => {
    const leader = await ensemble.leader();
    const follower = ensemble.members.find((member) => member !== leader)!;
    const started = performance.now();
    await follower.server.restart();
    const afterKillMs = performance.now() - started;
    // The leader has closed its connection meanwhile: syncLimit is 5 s here.
    await follower.server.pause();
    await until(() => leader.server.output.includes(`learner ${follower.id} is silent`));
    const resumed = performance.now();
    const before = follower.server.output.length;
    follower.server.resume();
    // Polling its mode is not enough: it may be back before the first poll.
    await until(() => / is established/.test(follower.server.output.slice(before)));
    const afterFreezeMs = performance.now() - resumed;
    console.log(`back after kill -9: ${afterKillMs.toFixed(0)} ms; after a freeze: ${afterFreezeMs.toFixed(0)} ms`);
    expect(await ensemble.modeOf(follower)).toBe('follower');
    expect(leader.server.output).not.toMatch(/is connected already, and that connection is alive/);
  });

  test('ignore a packet with the second to last epoch, at an established leader or a new one', async () => {
    const leader = await ensemble.leader();
    const [away, other] = ensemble.members.filter((member) => member !== leader);
    await away!.server.kill();
    const packet = followerInfo({ serverId: away!.id, acceptedEpoch: LAST_EPOCH - 1 });
    for (let i = 0; i < 3; i++) await (await RawPeer.say(leader.quorumPort, packet)).closed;
    expect(await ensemble.modeOf(leader)).toBe('leader');
    await expect
      .poll(() => leader.server.output)
      .toMatch(/has accepted epoch 2097150, .*Is its file acceptedEpoch damaged\?/);
    // A new leader receives it among its first packets.
    await Promise.all([leader.server.kill(), other!.server.kill()]);
    const restarts = [leader, other!].map(({ server }) => server.restart());
    let isOver = false;
    const knocks = (async () => {
      while (!isOver) {
        const knock = [leader, other!].map(({ quorumPort }) => RawPeer.say(quorumPort, packet).catch(() => null));
        for (const peer of await Promise.all(knock)) setTimeout(() => peer?.close(), 500);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    await Promise.all(restarts);
    isOver = true;
    await knocks;
    await away!.server.restart();
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await client.create('/goes-on');
    for (const member of ensemble.members) expect(epochIn(member, 'acceptedEpoch')).toBeLessThan(50);
  });

  test('elect and serve after notifications with impossible votes, epochs, zxids and rounds', async () => {
    const leader = await ensemble.leader();
    const last = 2n ** 53n - 1n;
    const votes: readonly PretendedVote[] = [
      { state: 'looking', leader: 3, zxid: 0n, round: last, peerEpoch: 0n },
      { state: 'looking', leader: 3, zxid: last, round: 2n, peerEpoch: 1n },
      { state: 'looking', leader: 3, zxid: 5n, round: 3n, peerEpoch: last },
      { state: 'leading', leader: 3, zxid: last, round: -last, peerEpoch: last },
      { state: 'following', leader: 3, zxid: last, round: last, peerEpoch: last },
    ];
    await leader.server.kill();
    const others = ensemble.members.filter((member) => member !== leader);
    for (const vote of votes) {
      for (const { electionPort, id } of others) {
        if (id < 3) (await RawPeer.say(electionPort, notification(3, vote))).close();
      }
    }
    await leader.server.restart();
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await client.create('/goes-on');
    // Rounds are kept in memory: the next election starts with the round of those packets.
    await (await ensemble.leader()).server.restart();
    await client.set('/goes-on', 'again');
    for (const member of ensemble.members) expect(epochIn(member, 'acceptedEpoch')).toBeLessThan(50);
  });

  test('continue without a server with a damaged acceptedEpoch file, which logs what to do', async () => {
    const leader = await ensemble.leader();
    const damaged = ensemble.members.find((member) => member !== leader)!;
    for (const state of ['established', 'starting'] as const) {
      await damaged.server.stop();
      writeEpoch(damaged, 2_000_000);
      const before = damaged.server.output.length;
      if (state === 'starting') {
        const others = ensemble.members.filter((member) => member !== damaged);
        await Promise.all(others.map(({ server }) => server.stop()));
        damaged.server.launch();
        await Promise.all(others.map(({ server }) => server.restart()));
      } else {
        damaged.server.launch();
      }
      await until(() => /has accepted epoch 2000000.*acceptedEpoch/.test(damaged.server.output.slice(before)));
      const client = await connect(`127.0.0.1:${(await ensemble.leader()).server.port}`, { sessionTimeoutMs: 20_000 });
      await client.create(`/${state}`);
      await client.close();
      expect(await ensemble.modeOf(damaged)).toBeNull();
      // As described in docs/zab.md.
      await damaged.server.stop();
      writeEpoch(damaged, epochIn(await ensemble.leader(), 'currentEpoch'));
      await damaged.server.restart();
      expect(await ensemble.modeOf(damaged)).toMatch(/leader|follower/);
      for (const member of ensemble.members) expect(epochIn(member, 'acceptedEpoch')).toBeLessThan(50);
    }
  });

  test('refuse to lead at the end of the epochs, and lose nothing in the recovery procedure', async () => {
    const first = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await first.create('/kept', 'data');
    await first.close();
    await Promise.all(ensemble.members.map(({ server }) => server.stop()));
    for (const member of ensemble.members) writeEpoch(member, LAST_EPOCH);
    for (const { server } of ensemble.members) server.launch();
    for (const { server } of ensemble.members) await until(() => /"The end of the epochs"/.test(server.output));
    for (const member of ensemble.members) expect(await ensemble.modeOf(member)).toBeNull();
    await Promise.all(ensemble.members.map(({ server }) => server.stop()));
    const latest = Math.max(...ensemble.members.map((member) => epochIn(member, 'currentEpoch')));
    for (const member of ensemble.members) writeEpoch(member, latest);
    await Promise.all(ensemble.members.map(({ server }) => server.restart()));
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    expect(new TextDecoder().decode((await client.get('/kept')).data)).toBe('data');
  });

  test('recover their data from the only server that still has it, although it is started last', async () => {
    const [survivor, ...others] = ensemble.members;
    const paths = await makeEpochs(ensemble);
    await Promise.all(ensemble.members.map(({ server }) => server.stop()));
    for (const member of others) wipe(member);
    await Promise.all(others.map(({ server }) => server.restart()));
    expect(epochIn(await ensemble.leader(), 'currentEpoch')).toBeLessThan(epochIn(survivor!, 'currentEpoch'));
    survivor!.server.launch();
    await until(async () => (await ensemble.modeOf(survivor!)) === 'leader');
    await expect.poll(() => survivor!.server.output).toMatch(/stays out and keeps its files/);
    for (const member of ensemble.members) {
      await until(async () => (await ensemble.modeOf(member)) !== null);
      await using client = await connectTo(member);
      for (const path of paths) expect(await client.exists(path)).not.toBeNull();
    }
  });
});

describeWith(['apache'], 'an Apache server that has the data that two of ours have lost', () => {
  test('does not join and keeps its files, and is elected when the others restart', async () => {
    const ensemble = await Ensemble.start([{ kind: 'apache' }, MEERKAT, MEERKAT]);
    onTestFailed(() => console.log(ensemble.logs));
    try {
      const [survivor, ...others] = ensemble.members;
      const paths = await makeEpochs(ensemble);
      await Promise.all(ensemble.members.map(({ server }) => server.stop()));
      const before = epochIn(survivor!, 'currentEpoch');
      for (const member of others) wipe(member);
      await Promise.all(others.map(({ server }) => server.restart()));
      survivor!.server.launch();
      // It keeps reconnecting and gets an older epoch than it has accepted.
      const refusal = /Leaders epoch, \d+ is less than accepted epoch/g;
      await until(() => (survivor!.server.output.match(refusal)?.length ?? 0) >= 5);
      expect(await ensemble.modeOf(survivor!)).toBeNull();
      for (const path of paths) expect(hasLogged(survivor!, path)).toBe(true);
      expect(epochIn(survivor!, 'currentEpoch')).toBe(before);
      await Promise.all(others.map(({ server }) => server.restart()));
      await until(async () => (await ensemble.modeOf(survivor!)) === 'leader');
      await using client = await connectTo(others[0]!);
      for (const path of paths) expect(await client.exists(path)).not.toBeNull();
    } finally {
      await ensemble.dispose();
    }
  });
});

const LAST_EPOCH = 2 ** 21 - 1;

/** Acknowledged txns of several epochs, in the logs of all servers. */
async function makeEpochs(ensemble: Ensemble): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let epoch = 1; epoch <= 4; epoch++) {
    const path = `/of-epoch-${epoch}`;
    const client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await client.create(path);
    await client.close();
    for (const member of ensemble.members) await until(() => hasLogged(member, path));
    paths.push(path);
    await Promise.all(ensemble.members.map(({ server }) => server.restart()));
  }
  return paths;
}

function epochPath({ server }: Member, name: 'acceptedEpoch' | 'currentEpoch'): string {
  return join(server.dataDirectory, 'version-2', name);
}

function epochIn(member: Member, name: 'acceptedEpoch' | 'currentEpoch'): number {
  return Number(readFileSync(epochPath(member, name), 'utf8'));
}

function writeEpoch(member: Member, acceptedEpoch: number): void {
  writeFileSync(epochPath(member, 'acceptedEpoch'), String(acceptedEpoch));
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}
