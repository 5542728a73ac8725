import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, kerberos } from '@meerkat/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SHORT_JAVA } from '../harness/java.ts';
import { KerberosRealm } from '../harness/kerberos-realm.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';

const TYPES = {
  'aes256-cts': 18,
  'aes128-cts': 17,
  'aes128-sha2': 19,
  'aes256-sha2': 20,
} as const;

describeWith(['kerberos', 'kazoo', 'apache'], 'SASL GSSAPI of our server', () => {
  let realm: KerberosRealm;
  let clientKeytab: string;
  let count = 0;

  beforeAll(async () => {
    realm = await KerberosRealm.start();
    clientKeytab = realm.addKeys('ann', 'aes256-cts:normal');
  });
  afterAll(() => realm?.dispose());

  function startServer(keytab: string, config: Record<string, string | boolean> = {}): Promise<ServerProcess> {
    const module = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true';
    const jaas = `Server { ${module} keyTab="${keytab}" principal="zookeeper/localhost@${realm.name}"; };`;
    return ServerProcess.start('meerkat', {
      jaas,
      config: { 'java.security.krb5.conf': realm.configPath, ...config },
    });
  }

  /** The identity printed by kazoo, or its refusal. */
  function askKazoo(server: ServerProcess, cache: string): string {
    const script = fileURLToPath(new URL('./kazoo_gssapi.py', import.meta.url));
    const { stdout, stderr } = spawnSync('/usr/bin/python3', [script, `localhost:${server.port}`, String(count++)], {
      encoding: 'utf8',
      timeout: 120_000,
      env: { ...realm.environment, KRB5CCNAME: cache },
    });
    return stdout.includes('done') ? stdout : `${stdout}${stderr}`;
  }

  test.each(Object.keys(TYPES))(
    'authenticates kazoo and our client with keys of type %s, with mutual authentication',
    async (type) => {
      const keytab = realm.addKeys('zookeeper/localhost', `${type}:normal`, `server-${type}.keytab`);
      await using server = await startServer(keytab);
      const cache = realm.login('ann', clientKeytab);
      expect(askKazoo(server, cache)).toContain(`Id(scheme='sasl', id='ann@${realm.name}')`);
      const own = realm.addKeys(`ann-${type}`, `${type}:normal`, `ann-${type}.keytab`, '+requires_preauth');
      const sasl = kerberos({ keytab: own, config: realm.configPath });
      await using client = await connect(`localhost:${server.port}`, { sasl });
      expect(await client.whoAmI()).toContainEqual({ scheme: 'sasl', user: `ann-${type}@${realm.name}` });
    },
  );

  test("authenticates Apache's shell, and maps its name as configured", async () => {
    const keytab = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-java.keytab');
    await using server = await startServer(keytab, { 'kerberos.removeRealmFromPrincipal': true });
    const jaas = join(realm.directory, 'client.jaas');
    const module = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true';
    writeFileSync(jaas, `Client { ${module} keyTab="${clientKeytab}" principal="ann@${realm.name}"; };`);
    const jars = ['zookeeper', 'netty-codec', 'netty-resolver'].map((jar) => `/usr/share/java/${jar}.jar`).join(':');
    const { stdout } = spawnSync(
      'java',
      [
        ...SHORT_JAVA,
        `-Djava.security.auth.login.config=${jaas}`,
        `-Djava.security.krb5.conf=${realm.configPath}`,
        '-Dzookeeper.sasl.client.canonicalize.hostname=false',
        ...['-cp', jars, 'org.apache.zookeeper.ZooKeeperMain', '-server', `localhost:${server.port}`, 'whoami'],
      ],
      { encoding: 'utf8', timeout: 120_000 },
    );
    expect(stdout).toContain('sasl: ann\n');
  });

  test('accepts renewed keys without a restart, and still tickets with the old ones', async () => {
    const keytab = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-renewed.keytab');
    await using server = await startServer(keytab);
    const old = realm.login('ann', clientKeytab);
    expect(askKazoo(server, old)).toContain('ann@');
    realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-renewed.keytab');
    expect(askKazoo(server, old)).toContain('ann@');
    expect(askKazoo(server, realm.login('ann', clientKeytab))).toContain('ann@');
  });

  test('refuses a ticket that no key can decrypt, and reports the required key', async () => {
    const keytab = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-stale.keytab');
    // The KDC has a newer key from here on.
    realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-other.keytab');
    await using server = await startServer(keytab);
    expect(askKazoo(server, realm.login('ann', clientKeytab))).not.toContain('ann@');
    await expect.poll(() => server.output).toMatch(/no key of the keytab opens its ticket/);
    expect(server.output).toMatch(
      /needs type 18 version \d+ of zookeeper\/localhost@TEST.EXAMPLE; the keytab has type 18/,
    );
  });

  test('if the server only accepts passwords, both sides report it', async () => {
    realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-unused.keytab');
    await using server = await ServerProcess.start('meerkat', { saslUsers: { bob: 'bobsecret' } });
    const sasl = kerberos({ keytab: clientKeytab, config: realm.configPath });
    await expect(connect(`localhost:${server.port}`, { sasl, connectTimeoutMs: 1000 })).rejects.toThrow(
      /the server takes passwords \(DIGEST-MD5\), not Kerberos: log in by one, or have a keytab there/,
    );
    expect(server.output).toMatch(
      /client \S+ failed to authenticate by "sasl": it begins as with Kerberos \(GSSAPI\), and this server takes a password/,
    );
  });

  test('refuses a principal that no rule maps', async () => {
    const keytab = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'server-rules.keytab');
    await using server = await startServer(keytab, { 'security.auth_to_local': 'RULE:[2:$1]' });
    expect(askKazoo(server, realm.login('ann', clientKeytab))).not.toContain('ann@');
    await expect.poll(() => server.output).toMatch(/no rule of security.auth_to_local maps/);
  });

  test('does not start without a keytab that contains the principal', async () => {
    await expect(startServer('/nowhere/zk.keytab')).rejects.toThrow(
      /the keytab \/nowhere\/zk.keytab cannot be read: there is no such file/,
    );
    expect(existsSync(clientKeytab)).toBe(true);
    await expect(startServer(clientKeytab)).rejects.toThrow(
      /has no key of zookeeper\/localhost@TEST.EXAMPLE; it is for ann@/,
    );
    await expect(startServer(realm.configPath)).rejects.toThrow(/is no keytab of version 0x0502/);
  });
});
