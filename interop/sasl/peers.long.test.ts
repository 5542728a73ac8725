import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AuthFailedError, acl, type Client, connect, digestMd5, NoAuthError } from '@meerkat/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Ensemble } from '../ensemble/ensemble.ts';
import { ConsoleProcess } from '../harness/console-process.ts';
import { SHORT_JAVA } from '../harness/java.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';

const USERS = { bob: 'bobsecret', ann: 'annsecret', Łukasz: 'żółć' };

describeWith(['kazoo', 'apache'], 'SASL DIGEST-MD5 of our server', () => {
  let server: ServerProcess;
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'interop-sasl-'));
    server = await ServerProcess.start('meerkat', { saslUsers: USERS });
  });
  afterAll(async () => {
    await server?.dispose();
    rmSync(directory, { recursive: true, force: true });
  });

  test('authenticates kazoo by its password, with its name in ACLs', async () => {
    const script = fileURLToPath(new URL('./kazoo_sasl.py', import.meta.url));
    await using client = new ConsoleProcess('/usr/bin/python3', [script, `127.0.0.1:${server.port}`]);
    await client.waitFor(/done/);
    expect(await client.end()).toBe(0);
  });

  test.each(['bob', 'Łukasz'] as const)("authenticates Apache's shell as %s", (name) => {
    expect(whoAmI(name, USERS[name])).toContain(`sasl: ${name}`);
  });

  test("refuses Apache's shell with a wrong password", () => {
    expect(whoAmI('bob', 'wrong')).not.toContain('sasl:');
  });

  function whoAmI(username: string, password: string): string {
    const jaas = join(directory, 'client.jaas');
    const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
    writeFileSync(jaas, `Client { ${module} username="${username}" password="${password}"; };`);
    const jars = ['zookeeper', 'netty-codec', 'netty-resolver'].map((jar) => `/usr/share/java/${jar}.jar`).join(':');
    const main = 'org.apache.zookeeper.ZooKeeperMain';
    const server_ = `127.0.0.1:${server.port}`;
    const { stdout } = spawnSync(
      'java',
      [
        ...SHORT_JAVA,
        `-Djava.security.auth.login.config=${jaas}`,
        '-Dfile.encoding=UTF-8',
        '-cp',
        jars,
        main,
        '-server',
        server_,
        'whoami',
      ],
      { encoding: 'utf8', timeout: 120_000, env: { ...process.env, LC_ALL: 'C.UTF-8' } },
    );
    return stdout;
  }
});

describe('SASL DIGEST-MD5 in an ensemble of ours', () => {
  let ensemble: Ensemble;
  let directory: string;
  const clients: Client[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'interop-sasl-'));
    const usersFile = join(directory, 'users');
    writeFileSync(usersFile, 'bob:bobsecret\nann:annsecret\n');
    const meerkat = { kind: 'meerkat' } as const;
    ensemble = await Ensemble.start([meerkat, meerkat, meerkat], {
      'sasl.usersFile': usersFile,
      'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
      sessionRequireClientSASLAuth: true,
    });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await ensemble?.dispose();
    rmSync(directory, { recursive: true, force: true });
  });

  async function open(servers: string, username: keyof typeof USERS, password = USERS[username]): Promise<Client> {
    const client = await connect(servers, { sessionTimeoutMs: 20_000, sasl: digestMd5({ username, password }) });
    clients.push(client);
    return client;
  }

  test('a user is known to every member, and keeps access when the leader dies', async () => {
    for (const { server, id } of ensemble.members) {
      const servers = `127.0.0.1:${server.port}`;
      const bob = await open(servers, 'bob');
      await bob.create(`/of-bob-${id}`, 'x', { acl: [acl.sasl('bob')] });
      const ann = await open(servers, 'ann');
      await expect(ann.set(`/of-bob-${id}`, 'y')).rejects.toThrow(NoAuthError);
      await expect(open(servers, 'bob', 'wrong')).rejects.toThrow(AuthFailedError);
    }
    const bob = await open(ensemble.connectString, 'bob');
    const leader = await ensemble.leader();
    await leader.server.kill();
    await ensemble.leader();
    await expect
      .poll(
        () =>
          bob.set('/of-bob-1', 'z').then(
            () => 'written',
            (error: Error) => error.message,
          ),
        { timeout: 60_000 },
      )
      .toBe('written');
    await leader.server.restart();
  });
});
