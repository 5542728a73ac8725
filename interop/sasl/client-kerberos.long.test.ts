import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Client, connect, kerberos } from '@meerkat/client';
import { KerberosError, TicketSource, type TicketSourceOptions } from '@meerkat/client/kerberos';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KDC_SURROUNDINGS, type KdcSurroundings } from '../../packages/client/src/kerberos/key-distribution.ts';
import { KerberosRealm } from '../harness/kerberos-realm.ts';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from '../harness/server-process.ts';

const HOUR_MS = 3_600_000;

describeWith(['kerberos', 'apache'], 'Kerberos in our client', () => {
  let realm: KerberosRealm;
  /** Keytab of ann. */
  let keytab: string;
  /** Keytab of the servers. */
  let service: string;
  const servers = new Map<ServerKind, ServerProcess>();

  beforeAll(async () => {
    realm = await KerberosRealm.start();
    keytab = realm.addKeys('ann', 'aes256-cts:normal', 'ann.keytab', '+requires_preauth');
    service = realm.addKeys('zookeeper/localhost', 'aes256-cts:normal');
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

  test.each(SERVER_KINDS)('authenticates with a keytab at a server of %s', async (kind) => {
    const client = await connect(at(kind), { sasl: kerberos({ keytab, ...own() }) });
    expect(await namesOf(client)).toEqual([`ann@${realm.name}`]);
  });

  test.each(SERVER_KINDS)('authenticates with a ticket of kinit at a server of %s', async (kind) => {
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

  test('reports what is wrong, and what to do', async () => {
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
    // A short-lived ticket.
    const short = realm.login('ann', keytab, '-l', '30s');
    expect(await refusalOf({ cache: short })).toMatch(/the ticket of ann@.* ends at .*: run kinit/);
    // The key in the file is older than that of the KDC.
    const stale = realm.addKeys('eve', 'aes256-cts:normal', 'eve.keytab', '+requires_preauth');
    realm.addKeys('eve', 'aes256-cts:normal', 'eve-new.keytab');
    expect(await refusalOf({ keytab: stale })).toMatch(
      /has another key of eve@.* than \/.*eve.keytab \(error 24, .*\): its password or key was changed since/,
    );
    // The same without preauthentication.
    const careless = realm.addKeys('bob', 'aes256-cts:normal', 'bob.keytab');
    realm.addKeys('bob', 'aes256-cts:normal', 'bob-new.keytab');
    expect(await refusalOf({ keytab: careless })).toMatch(
      /no key of bob@.* in the keytab \/.*bob.keytab opens the answer .* one of type 18; it has type 18 version 2/,
    );
    // A realm that this KDC does not serve.
    const other = path('other.keytab');
    writeFileSync(
      other,
      Buffer.from(readFileSync(keytab).toString('latin1').replaceAll(realm.name, 'OTHER.REALM1'), 'latin1'),
    );
    writeFileSync(path('realms.conf'), readFileSync(realm.configPath, 'utf8').replaceAll(realm.name, 'OTHER.REALM1'));
    expect(await refusalOf({ keytab: other, config: path('realms.conf') })).toMatch(
      /of OTHER.REALM1 does not know ann@OTHER.REALM1 \(error 6, .*\): check the principal and its realm/,
    );
  });

  test('a failed connect reports it too', async () => {
    const failed = connect(at('meerkat'), { sasl: kerberos({ cache: '/nowhere', ...own() }), connectTimeoutMs: 2000 });
    await expect(failed).rejects.toThrow(
      /SASL authentication failed.* \(there is no ticket cache \/nowhere: run kinit/,
    );
  });

  /** A ticket source with an attacker that reads and modifies the KDC's answers. */
  function attacked(change: (answer: Uint8Array, number: number) => Uint8Array): TicketSource {
    let number = 0;
    const surroundings: KdcSurroundings = {
      ...KDC_SURROUNDINGS,
      askByTcp: async (kdc, message) => change(await KDC_SURROUNDINGS.askByTcp(kdc, message), ++number),
    };
    return new TicketSource({ keytab, ...own() }, {}, surroundings);
  }

  test('rejects answers to other requests and modified answers', async () => {
    const answers: Uint8Array[] = [];
    const recording = attacked((answer) => {
      answers.push(answer);
      return answer;
    });
    const good = await recording.get('zookeeper/localhost');
    // The preauthentication error, the ticket-granting ticket, and the service ticket.
    expect(answers).toHaveLength(3);
    const [, granting = new Uint8Array(0), last = new Uint8Array(0)] = answers;
    await expect(
      attacked((answer, number) => (number === 2 ? granting : answer)).get('zookeeper/localhost'),
    ).rejects.toThrow(/the key distribution center of .* sends the answer to another request/);
    // It is encrypted with a key that this client does not have.
    await expect(
      attacked((answer, number) => (number === 3 ? last : answer)).get('zookeeper/localhost'),
    ).rejects.toThrow(/answers with a ticket that its own key does not open/);
    const asBob = (answer: Uint8Array): Uint8Array => {
      const changed = Buffer.from(answer);
      changed.write('bob', changed.indexOf('\u001b\u0003ann') + 2);
      return changed;
    };
    for (const which of [2, 3]) {
      const changing = attacked((answer, number) => (number === which ? asBob(answer) : answer));
      await expect(changing.get('zookeeper/localhost')).rejects.toThrow(/answers with a ticket of bob@/);
    }
    // Wherever it is modified or truncated: a Kerberos error, or the same ticket with bytes that the service checks.
    for (let i = 0; i < 150; i++) {
      const which = 1 + (i % 3);
      const damage = (answer: Uint8Array): Uint8Array => {
        const at = (i * 7919) % answer.length;
        if (i % 2 === 0) return answer.subarray(0, at);
        const changed = Buffer.from(answer);
        changed[at] = (changed[at] ?? 0) ^ (1 + (i % 255));
        return changed;
      };
      const ticket = await attacked((answer, number) => (number === which ? damage(answer) : answer))
        .get('zookeeper/localhost')
        .catch((error: unknown) => error);
      if (ticket instanceof Error) expect(ticket).toBeInstanceOf(KerberosError);
      else expect(ticket).toMatchObject({ client: good.client, service: good.service });
    }
  });

  test('tries the next KDC when one accepts the connection but does not answer', async () => {
    const silent = createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const config = join(realm.directory, 'two.conf');
    writeFileSync(
      config,
      readFileSync(realm.configPath, 'utf8').replace(/^( *)kdc = /m, `$1kdc = 127.0.0.1:${port}\n$1kdc = `),
    );
    const asked: number[] = [];
    const surroundings: KdcSurroundings = {
      ...KDC_SURROUNDINGS,
      askByTcp: (kdc, message) => {
        asked.push(kdc.port);
        return KDC_SURROUNDINGS.askByTcp(kdc, message);
      },
    };
    const ticket = await new TicketSource({ keytab, config }, {}, surroundings).get('zookeeper/localhost');
    expect(ticket.client).toBe(`ann@${realm.name}`);
    // Once, not once per request.
    expect(asked.filter((each) => each === port)).toHaveLength(1);
    await expect(
      connect(at('meerkat'), { sasl: kerberos({ keytab, config: silentOnly(config) }), connectTimeoutMs: 1000 }),
    ).rejects.toThrow(/nothing to log in with by SASL/);
    silent.close();
  });

  /** The configuration with only the first KDC. */
  function silentOnly(config: string): string {
    const path = join(realm.directory, 'silent.conf');
    let count = 0;
    writeFileSync(
      path,
      readFileSync(config, 'utf8').replaceAll(/^ *kdc = .*\n/gm, (line) => (count++ === 0 ? line : '')),
    );
    return path;
  }

  test('reports the clock skew', async () => {
    const ahead = (ms: number): TicketSource =>
      new TicketSource({ keytab, ...own() }, process.env, { ...KDC_SURROUNDINGS, nowMs: () => Date.now() + ms });
    await expect(ahead(HOUR_MS).get('zookeeper/localhost')).rejects.toThrow(
      /the clock of this machine is 360\d s ahead of that of the key distribution center .* \(error 37, .*\): synchronize/,
    );
    await expect(ahead(-HOUR_MS).get('zookeeper/localhost')).rejects.toThrow(/3(599|600) s behind/);
    expect((await ahead(0).get('zookeeper/localhost')).client).toBe(`ann@${realm.name}`);
  });

  test('fetches a ticket once, and uses a new cache as soon as it exists', async () => {
    const cache = realm.login('ann', keytab);
    const source = new TicketSource({ cache, ...own() });
    const first = await source.get('zookeeper/localhost');
    expect(await source.get('zookeeper/localhost')).toBe(first);
    realm.login('ann', keytab);
    const second = await source.get('zookeeper/localhost');
    expect(second).not.toBe(first);
    // A fresh ticket that the service refuses is not fetched again, to avoid an endless loop.
    expect(source.refuse('zookeeper/localhost', first)).toBe(true);
    expect(source.refuse('zookeeper/localhost', second)).toBe(false);
    expect(await source.get('zookeeper/localhost')).toBe(second);
    rmSync(cache.replace('FILE:', ''));
    await expect(source.get('zookeeper/localhost')).rejects.toThrow(/there is no ticket cache/);
  });

  test('with a keytab, logs in again when the key of the realm has changed', async () => {
    const others = ['one', 'two'].map((name) => `zookeeper/${name}`);
    for (const name of others) realm.addKeys(name, 'aes256-cts:normal', 'others.keytab');
    const source = new TicketSource({ keytab, ...own() });
    await source.get('zookeeper/one');
    realm.addKeys(`krbtgt/${realm.name}`, 'aes256-cts:normal', 'krbtgt.keytab');
    expect((await source.get('zookeeper/two')).service).toBe(`zookeeper/two@${realm.name}`);
  });

  test('keeps no ticket of a login that has ended while it was fetched', async () => {
    realm.addKeys('zookeeper/other', 'aes256-cts:normal');
    const ofBob = realm.login('bob', realm.addKeys('bob', 'aes256-cts:normal'));
    const cache = realm.login('ann', keytab);
    const source = new TicketSource({ cache, ...own() });
    const first = source.get('zookeeper/localhost');
    renameSync(ofBob.replace('FILE:', ''), cache.replace('FILE:', ''));
    await source.get('zookeeper/other');
    expect((await first).client).toBe(`ann@${realm.name}`);
    expect((await source.get('zookeeper/localhost')).client).toBe(`bob@${realm.name}`);
  });

  test.each(SERVER_KINDS)('the command line logs in at the server of %s', (kind) => {
    const [program, ...words] = MEERKAT_COMMAND;
    const run = (env: Record<string, string>, command: readonly string[]) =>
      spawnSync(program, [...words, ...command, '--server', at(kind), '--sasl', 'kerberos'], {
        encoding: 'utf8',
        env: { ...realm.environment, HOME: realm.directory, ...env },
      });
    // The znode is created with ann's ticket, and she can read it with her keytab.
    const created = run({ KRB5CCNAME: realm.login('ann', keytab) }, ['create', '/of-ann', 'x', '--acl', 'creator']);
    expect(created.stderr).toBe('');
    const none = join(realm.directory, 'none');
    expect(run({ KRB5CCNAME: none, KRB5_CLIENT_KTNAME: keytab }, ['acl', '/of-ann']).stdout).toContain(`sasl:ann@`);
    const failed = run({ KRB5CCNAME: none }, ['acl', '/of-ann', '--connect-timeout', '1s']);
    expect(failed.status).not.toBe(0);
    expect(failed.stderr).toMatch(/there is no ticket cache \/.*none: run kinit/);
  });

  // Must be last, because it changes the key of the servers.
  test("fetches a new ticket when the service's key has changed", async () => {
    const sasl = kerberos({ keytab, ...own() });
    await (await connect(at('meerkat'), { sasl })).close();
    renameSync(realm.addKeys('zookeeper/localhost', 'aes256-cts:normal', 'renewed.keytab'), service);
    expect(await namesOf(await connect(at('meerkat'), { sasl }))).toEqual([`ann@${realm.name}`]);
  });
});
