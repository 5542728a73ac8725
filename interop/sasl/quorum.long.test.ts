import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Ensemble, type Member, type Place } from '../ensemble/ensemble.ts';
import { followerInfo, notification, RawPeer } from '../ensemble/raw-peer.ts';
import { connectTo } from '../ensemble/workload.ts';
import { describeWith } from '../harness/peers.ts';
import { record } from '../harness/record-builder.ts';
import type { ServerKind } from '../harness/server-process.ts';

const MODULE = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
const jaas = (password: string): string => `
QuorumServer { ${MODULE} user_zk="a long password"; };
QuorumLearner { ${MODULE} username="zk" password="${password}"; };
`;
const place = (kind: ServerKind, password = 'a long password'): Place => ({ kind, jaas: jaas(password) });

const STEPS = {
  off: {},
  enabled: { 'quorum.auth.enableSasl': true },
  learner: { 'quorum.auth.enableSasl': true, 'quorum.auth.learnerRequireSasl': true },
  required: {
    'quorum.auth.enableSasl': true,
    'quorum.auth.learnerRequireSasl': true,
    'quorum.auth.serverRequireSasl': true,
  },
};

let ensemble: Ensemble | null = null;
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') console.log(ensemble?.logs);
  await ensemble?.dispose();
  ensemble = null;
});

/** Writes through one member and reads it at the others. */
async function check(members: readonly Member[], path: string): Promise<void> {
  for (const [i, writer] of members.entries()) {
    await using client = await connectTo(writer);
    await client.create(`${path}-${i}`, 'x');
    for (const reader of members) {
      await using other = await connectTo(reader);
      await other.sync();
      expect(await other.exists(`${path}-${i}`)).not.toBeNull();
    }
  }
}

/** Makes each kind of server lead once. */
async function checkRoles(kinds: readonly ServerKind[]): Promise<void> {
  for (const kind of kinds) {
    const leader = await ensemble!.leaderOfKind(kind);
    await check(ensemble!.members, `/led-by-${leader.id}-${kind}`);
  }
}

describeWith(['apache'], 'SASL between servers', () => {
  test.each([
    ['two of Apache and one of ours', ['apache', 'apache', 'meerkat']],
    ['one of Apache and two of ours', ['meerkat', 'meerkat', 'apache']],
  ] as const)('%s form an ensemble under any leader', async (_, kinds) => {
    ensemble = await Ensemble.start(
      kinds.map((kind) => place(kind)),
      STEPS.required,
    );
    await checkRoles(['apache', 'meerkat']);
  });

  test('is enabled by rolling restarts together with Apache servers, always with a quorum', async () => {
    ensemble = await Ensemble.start([place('apache'), place('meerkat'), place('meerkat')], STEPS.off);
    for (const step of [STEPS.enabled, STEPS.learner, STEPS.required]) {
      for (const member of ensemble.members) {
        member.server.reconfigure(step);
        await member.server.restart();
        await check(ensemble.members, `/step-${Object.keys(step).length}-${member.id}`);
      }
    }
  });
});

describeWith(['apache'], 'SASL of another mechanism between servers', () => {
  test('is answered as by Apache, and the log says so', async () => {
    ensemble = await Ensemble.start([place('apache'), place('meerkat')], STEPS.required);
    const token = Buffer.from('6082020006092a864886f7120102020100', 'hex');
    const packet = record().long(0x5f2435013501edccn).int(0).buffer(token).build();
    const hello = record().long(-65536n).long(9n).ustring('127.0.0.1:9').build();
    const answers = ensemble.members.map(async ({ electionPort }) => {
      const peer = await RawPeer.say(electionPort, Buffer.concat([hello, packet, packet]));
      await peer.closed;
      return peer.received.toString('latin1').replace(/nonce="[^"]*"/, 'nonce');
    });
    const [apache = '', meerkat] = await Promise.all(answers);
    expect(meerkat).toBe(apache);
    expect(apache).toMatch(/realm="zk-quorum-sasl-md5",nonce/);
    // Magic, status −1, an empty token.
    expect(Buffer.from(apache.slice(-16), 'latin1').toString('hex')).toBe('5f2435013501edccffffffff00000000');
    expect(ensemble.members[1]?.server.output).toMatch(
      /WARN +127.0.0.1:\d+ on the election port: it begins as with Kerberos \(GSSAPI\), and this server takes a password/,
    );
  });
});

describe('SASL between servers of ours', () => {
  test('refuses a server with a wrong password, and both logs say why', async () => {
    ensemble = await Ensemble.start([place('meerkat'), place('meerkat'), place('meerkat')], STEPS.required);
    const third = ensemble.members[2]!;
    await third.server.kill();
    const login = join(third.server.directory, 'wrong.conf');
    writeFileSync(login, jaas('wrong'));
    third.server.reconfigure({ 'java.security.auth.login.config': login });
    third.server.launch();
    const leader = await ensemble.leader();
    await expect.poll(() => leader.server.output).toMatch(/the password of "zk" is wrong/);
    await expect.poll(() => third.server.output).toMatch(/it refuses the SASL login of this server/);
    expect(await ensemble.modeOf(third)).toBeNull();
    await check(ensemble.members.slice(0, 2), '/two');
  });

  test('allows no unauthenticated peer to vote or follow', async () => {
    ensemble = await Ensemble.start([place('meerkat'), place('meerkat'), place('meerkat')], STEPS.required);
    const leader = await ensemble.leader();
    const vote = { state: 'looking', leader: 3, zxid: 99n, round: 99n, peerEpoch: 1n } as const;
    const voter = await RawPeer.say(leader.electionPort, notification(9, vote));
    const follower = await RawPeer.say(leader.quorumPort, followerInfo({ serverId: 1, acceptedEpoch: 1 }));
    const magic = record().long(0x5f2435013501edccn).int(0).buffer('').build();
    const garbage = await RawPeer.say(leader.quorumPort, Buffer.concat([magic, Buffer.alloc(64, 0x41)]));
    await Promise.all([voter.closed, follower.closed, garbage.closed]);
    expect(voter.received).toHaveLength(0);
    expect(follower.received).toHaveLength(0);
    // Only the challenge, no Zab packets.
    expect(garbage.received.subarray(0, 8).toString('hex')).toBe('5f2435013501edcc');
    expect(leader.server.output).toMatch(/it does not authenticate, which quorum.auth.serverRequireSasl demands/);
    await check(ensemble.members, '/after');
  });
});
