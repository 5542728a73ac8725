import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, connect, kerberos } from '@meerkat/client';
import { TicketSource, type TicketSourceOptions } from '@meerkat/client/kerberos';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KerberosRealm } from '../harness/kerberos-realm.ts';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from '../harness/server-process.ts';

const HOUR_MS = 3_600_000;

describeWith(['kerberos', 'apache'], 'Kerberos in our client', () => {
  let realm: KerberosRealm;
  /** The key of ann, as she has it. */
  let keytab: string;
  const servers = new Map<ServerKind, ServerProcess>();

  beforeAll(async () => {
    realm = await KerberosRealm.start();
    keytab = realm.addKeys('ann', 'aes256-cts:normal', 'ann.keytab', '+requires_preauth');
    const service = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal');
    const module = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true';
    const jaas = `Server { ${module} keyTab="${service}" principal="zookeeper/localhost@${realm.name}"; };`;
    for (const kind of SERVER_KINDS) {
      const config = kind === 'meerkat' ? { 'java.security.krb5.conf': realm.configPath } : {};
      const env = { JAVA_TOOL_OPTIONS: `-Djava.security.krb5.conf=${realm.configPath}` };
      servers.set(kind, await ServerProcess.start(kind, { jaas, config, ...(kind === 'apache' ? { env } : {}) }));
    }
  });
  afterAll(async () => {
    for (const server of servers.values()) await server.dispose();
    realm?.dispose();
  });

  const at = (kind: ServerKind): string => `localhost:${servers.get(kind)?.port}`;
  const own = (): { config: string } => ({ config: realm.configPath });

  async function namesOf(client: Client): Promise<readonly string[]> {
    await using open = client;
    return (await open.whoAmI()).filter(({ scheme }) => scheme === 'sasl').map(({ user }) => user);
  }

  test.each(SERVER_KINDS)('a keytab lets it in at the server of %s', async (kind) => {
    const client = await connect(at(kind), { sasl: kerberos({ keytab, ...own() }) });
    expect(await namesOf(client)).toEqual([`ann@${realm.name}`]);
  });

  test.each(SERVER_KINDS)('the ticket of kinit lets it in at the server of %s', async (kind) => {
    const cache = realm.login('ann', keytab);
    const client = await connect(at(kind), { sasl: kerberos({ cache, ...own() }) });
    expect(await namesOf(client)).toEqual([`ann@${realm.name}`]);
  });

  async function refusalOf(options: TicketSourceOptions, service = 'zookeeper/localhost'): Promise<string> {
    const { message } = await new TicketSource({ ...own(), ...options }, {}).get(service).then(
      () => new Error('there is a ticket'),
      (error: Error) => error,
    );
    return message;
  }

  test('says what is wrong, and what to do', async () => {
    const path = (name: string): string => join(realm.directory, name);
    expect(await refusalOf({ cache: path('nowhere') })).toMatch(/there is no ticket cache \/.*nowhere: run kinit, set/);
    expect(await refusalOf({ cache: realm.configPath })).toMatch(/krb5.conf is no ticket cache .*: run kinit/);
    expect(await refusalOf({ cache: 'KEYRING:persistent:0' })).toMatch(/is of type KEYRING; only FILE is read/);
    expect(await refusalOf({ keytab: path('nowhere') })).toMatch(
      /the keytab \/.*nowhere cannot be read: ENOENT; correct/,
    );
    expect(await refusalOf({ keytab, principal: 'bob' })).toMatch(/no key of AES for bob@.*; it has keys of ann@/);
    expect(await refusalOf({ keytab }, 'kafka/localhost')).toMatch(
      /does not know the service kafka\/localhost@.* \(error 7, .*\): use the host name/,
    );
    writeFileSync(path('other.conf'), `[realms]\n${realm.name} = {\n kdc = 127.0.0.1:1\n}\n`);
    expect(await refusalOf({ keytab, config: path('other.conf') })).toMatch(
      /no key distribution center of the realm .* answers \(127.0.0.1:1: connect ECONNREFUSED/,
    );
    // A ticket that was good for a moment.
    const short = realm.login('ann', keytab, '-l', '30s');
    expect(await refusalOf({ cache: short })).toMatch(/the ticket of ann@.* ends at .*: run kinit/);
    // The key in the file is no longer the one that the key distribution center has.
    const stale = realm.addKeys('eve', 'aes256-cts:normal', 'eve.keytab', '+requires_preauth');
    realm.addKeys('eve', 'aes256-cts:normal', 'eve-new.keytab');
    expect(await refusalOf({ keytab: stale })).toMatch(
      /has another key of eve@.* than \/.*eve.keytab \(error 24, .*\): its password or key was changed since/,
    );
  });

  test('a failed attempt to connect says it, too', async () => {
    const failed = connect(at('meerkat'), { sasl: kerberos({ cache: '/nowhere', ...own() }), connectTimeoutMs: 2000 });
    await expect(failed).rejects.toThrow(
      /SASL authentication failed.* \(there is no ticket cache \/nowhere: run kinit/,
    );
  });

  test('says how far the clocks are apart', async () => {
    const { KDC_SURROUNDINGS } = await import('../../packages/client/src/kerberos/key-distribution.ts');
    const ahead = (ms: number): TicketSource =>
      new TicketSource({ keytab, ...own() }, process.env, { ...KDC_SURROUNDINGS, nowMs: () => Date.now() + ms });
    await expect(ahead(HOUR_MS).get('zookeeper/localhost')).rejects.toThrow(
      /the clock of this machine is 360\d s ahead of that of the key distribution center .* \(error 37, .*\): synchronize/,
    );
    await expect(ahead(-HOUR_MS).get('zookeeper/localhost')).rejects.toThrow(/3(599|600) s behind/);
    expect((await ahead(0).get('zookeeper/localhost')).client).toBe(`ann@${realm.name}`);
  });

  test('fetches a ticket once, and takes another cache as soon as it is there', async () => {
    const cache = realm.login('ann', keytab);
    const source = new TicketSource({ cache, ...own() });
    const first = await source.get('zookeeper/localhost');
    expect(await source.get('zookeeper/localhost')).toBe(first);
    realm.login('ann', keytab);
    expect(await source.get('zookeeper/localhost')).not.toBe(first);
    rmSync(cache.replace('FILE:', ''));
    await expect(source.get('zookeeper/localhost')).rejects.toThrow(/there is no ticket cache/);
  });

  test.each(SERVER_KINDS)('the command line logs in at the server of %s', (kind) => {
    const [program, ...words] = MEERKAT_COMMAND;
    const run = (env: Record<string, string>, command: readonly string[]) =>
      spawnSync(program, [...words, ...command, '--server', at(kind), '--sasl', 'kerberos'], {
        encoding: 'utf8',
        env: { ...realm.environment, HOME: realm.directory, ...env },
      });
    // The znode belongs to its creator, who is ann by her ticket, and she may look at it by her key.
    const created = run({ KRB5CCNAME: realm.login('ann', keytab) }, ['create', '/of-ann', 'x', '--acl', 'creator']);
    expect(created.stderr).toBe('');
    const none = join(realm.directory, 'none');
    expect(run({ KRB5CCNAME: none, KRB5_CLIENT_KTNAME: keytab }, ['acl', '/of-ann']).stdout).toContain(`sasl:ann@`);
    const failed = run({ KRB5CCNAME: none }, ['acl', '/of-ann', '--connect-timeout', '1s']);
    expect(failed.status).not.toBe(0);
    expect(failed.stderr).toMatch(/there is no ticket cache \/.*none: run kinit/);
  });
});
