import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Ensemble, type Member, type Place } from '../ensemble/ensemble.ts';
import { RawPeer } from '../ensemble/raw-peer.ts';
import { connectTo } from '../ensemble/workload.ts';
import { KerberosRealm } from '../harness/kerberos-realm.ts';
import { describeWith } from '../harness/peers.ts';
import { record } from '../harness/record-builder.ts';
import type { ServerKind } from '../harness/server-process.ts';

const REQUIRED = {
  'quorum.auth.enableSasl': true,
  'quorum.auth.learnerRequireSasl': true,
  'quorum.auth.serverRequireSasl': true,
  'quorum.auth.kerberos.servicePrincipal': 'zkquorum/_HOST',
};

describeWith(['kerberos', 'apache'], 'Kerberos between servers', () => {
  let realm: KerberosRealm;
  let ensemble: Ensemble | null = null;

  beforeAll(async () => {
    realm = await KerberosRealm.start();
    for (const principal of ['zkquorum/localhost', 'zkquorum/elsewhere', 'eve']) {
      realm.addKeys(principal, 'aes256-cts:normal');
    }
  });
  afterEach(async (context) => {
    if (context.task.result?.state === 'fail') console.log(ensemble?.logs);
    await ensemble?.dispose();
    ensemble = null;
  });
  afterAll(() => realm?.dispose());

  /** JAAS sections of a server with the principal zkquorum/localhost, which logs in as `learner`. */
  function jaas(learner = 'zkquorum/localhost'): string {
    const section = (name: string, principal: string): string => {
      const keytab = join(realm.directory, `${principal.replace('/', '-')}.keytab`);
      const module =
        'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false';
      return `${name} { ${module} keyTab="${keytab}" principal="${principal}@${realm.name}"; };\n`;
    };
    return section('QuorumServer', 'zkquorum/localhost') + section('QuorumLearner', learner);
  }

  function place(kind: ServerKind): Place {
    const env = { JAVA_TOOL_OPTIONS: `-Djava.security.krb5.conf=${realm.configPath}` };
    return { kind, jaas: jaas(), host: 'localhost', ...(kind === 'apache' ? { env } : {}) };
  }

  function start(kinds: readonly ServerKind[]): Promise<Ensemble> {
    return Ensemble.start(kinds.map(place), { ...REQUIRED, 'java.security.krb5.conf': realm.configPath });
  }

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

  test.each([
    ['two of Apache and one of ours', ['apache', 'apache', 'meerkat']],
    ['one of Apache and two of ours', ['meerkat', 'meerkat', 'apache']],
  ] as const)('%s form an ensemble under any leader, and refuse a peer with a password', async (_, kinds) => {
    ensemble = await start(kinds);
    for (const kind of ['apache', 'meerkat'] as const) {
      const leader = await ensemble.leaderOfKind(kind);
      await check(ensemble.members, `/led-by-${leader.id}-${kind}`);
    }
    const hello = record().long(-65536n).long(9n).ustring('127.0.0.1:9').build();
    const packet = record().long(0x5f2435013501edccn).int(0).buffer('').build();
    for (const { electionPort, server } of ensemble.members) {
      const peer = await RawPeer.say(electionPort, Buffer.concat([hello, packet]));
      await peer.closed;
      // Magic, status −1, an empty token.
      expect(peer.received.toString('hex'), server.kind).toBe('5f2435013501edccffffffff00000000');
      if (server.kind === 'apache') continue;
      expect(server.output).toMatch(
        /on the election port: .*it begins as with a password \(DIGEST-MD5\), and this server takes Kerberos \(GSSAPI\) alone/,
      );
    }
  });

  test('refuses a server whose principal is not a member or has no host, and reports why', async () => {
    ensemble = await start(['meerkat', 'meerkat', 'meerkat']);
    const third = ensemble.members[2]!;
    for (const [principal, reason] of [
      ['zkquorum/elsewhere', /zkquorum\/elsewhere@.* is at none of the hosts of the server.N lines: localhost/],
      ['eve', /eve@.* names no host/],
    ] as const) {
      await third.server.kill();
      const login = join(third.server.directory, 'other.conf');
      writeFileSync(login, jaas(principal));
      third.server.reconfigure({ 'java.security.auth.login.config': login });
      third.server.launch();
      const leader = await ensemble.leader();
      await expect.poll(() => leader.server.output).toMatch(reason);
    }
    await expect.poll(() => third.server.output).toMatch(/it refuses the SASL login of this server/);
    expect(await ensemble.modeOf(third)).toBeNull();
    await check(ensemble.members.slice(0, 2), '/two');
  });
});
