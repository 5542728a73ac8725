import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { expect, onTestFailed, test } from 'vitest';
import { KerberosRealm } from './harness/kerberos-realm.ts';
import { MEERKAT_IN_SHELL } from './harness/meerkat-command.ts';
import { describeWith } from './harness/peers.ts';

/*
 * kazoo's own tests, from Debian's package, on servers started by its harness, which writes zoo.cfg, myid and JAAS
 * files, and calls `java`. That is replaced by our server, which accepts Java properties on its command line. Nothing
 * else is changed, except that the servers only listen on loopback.
 *
 * By default only the tests of security: DIGEST-MD5 in both forms of kazoo, Kerberos and auth packets, at one server,
 * because they give an ensemble only a tenth of a second to catch up; and reconfig, which needs the super user, with
 * the JAAS file without a section that kazoo's harness writes. All tests, in an ensemble with SASL users:
 * `KAZOO_TESTS=kazoo.tests npx vitest run interop/kazoo-suite`
 */
interface Run {
  readonly what: string;
  readonly servers: number;
  readonly tests: readonly string[];
  /** Minimum number of server starts. */
  readonly starts: number;
  /** With SASL users from the start. */
  readonly hasUsers: boolean;
}

const SELECTED = env['KAZOO_TESTS']?.split(' ') ?? null;
const SASL = ['kazoo.tests.test_sasl', 'kazoo.tests.test_client::TestAuthentication'];
const RECONFIG = ['kazoo.tests.test_client::TestReconfig'];
const RUNS: readonly Run[] =
  SELECTED === null
    ? [
        { what: 'by passwords and by Kerberos', servers: 1, tests: SASL, starts: 2, hasUsers: true },
        { what: 'changes of members, without users', servers: 3, tests: RECONFIG, starts: 3, hasUsers: false },
      ]
    : [{ what: SELECTED.join(' '), servers: 3, tests: SELECTED, starts: 3, hasUsers: true }];

/** Port offsets of its three servers: each uses four ports, ten after those of the previous one. */
const PORTS = [0, 10, 20].flatMap((first) => [0, 1, 2, 3].map((port) => first + port));

describeWith(['kazooTests', 'kazoo', 'kerberos'], "kazoo's own tests", () => {
  test.each(RUNS)('pass: $what', async ({ servers: size, tests, starts, hasUsers }) => {
    const directory = mkdtempSync(join(tmpdir(), 'interop-kazoo-suite-'));
    const realm = await KerberosRealm.start('KAZOOTEST.ORG');
    let output = '';
    onTestFailed(() => console.log(output));
    try {
      realm.addKeys('zookeeper/127.0.0.1', 'aes256-cts:normal,aes128-cts:normal', 'server.keytab');
      realm.addKeys('client', 'aes256-cts:normal,aes128-cts:normal', 'client.keytab');
      const [programs, servers] = ['bin', 'servers'].map((name) => join(directory, name)) as [string, string];
      for (const each of [programs, servers]) mkdirSync(each);
      writeJava(programs);
      writeFileSync(join(directory, 'refused.py'), REFUSED);
      const runner = spawn('/usr/bin/python3', ['-B', '-m', 'pytest', ...OPTIONS, '--pyargs', ...tests], {
        cwd: directory,
        env: {
          ...realm.environment,
          PATH: `${programs}:${env['PATH']}`,
          PYTHONPATH: directory,
          // Its servers create their directories there.
          TMPDIR: servers,
          KRB5_TEST_ENV: realm.directory,
          KRB5CCNAME: `FILE:${join(directory, 'tickets')}`,
          ZOOKEEPER_CLASSPATH: 'none',
          ZOOKEEPER_VERSION: '3.8.0',
          ZOOKEEPER_CLUSTER_SIZE: String(size),
          ZOOKEEPER_PORT_OFFSET: String(await findPortOffset()),
          ...(hasUsers ? { ZOOKEEPER_JAAS_AUTH: 'digest' } : {}),
        },
      });
      for (const stream of [runner.stdout, runner.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString();
        });
      }
      const code = await new Promise((resolve) => runner.once('close', resolve));
      expect(output).toMatch(/\n(?:\d+ passed|=+ \d+ passed)/);
      expect(output).not.toMatch(/Test Kerberos environ not setup|PureSASL not available/);
      expect(code).toBe(0);
      if (SELECTED !== null) console.log(output);
      const logs = readdirSync(programs).filter((name) => name.endsWith('.log'));
      expect(logs.length).toBeGreaterThanOrEqual(starts);
      for (const log of logs) {
        const text = readFileSync(join(programs, log), 'utf8');
        expect(text).toMatch(/clients are served/);
        expect(text).not.toMatch(/ ERROR |super_secret|jaas_password/);
      }
    } finally {
      realm.dispose();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

const OPTIONS = ['-q', '--tb=short', '-rs', '-p', 'no:cacheprovider', '-p', 'refused', '-W', 'ignore'];

/**
 * Kazoo is connected before it authenticates. When it is refused before the thread that called `start` resumes, it
 * reports a timeout, and its own tests fail: this patch makes it report the refusal then too.
 */
const REFUSED = `
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError
from kazoo.protocol.states import KeeperState

start, session_callback = KazooClient.start, KazooClient._session_callback

def start_and_tell(client, timeout=15):
    client.was_refused = False
    try:
        start(client, timeout)
    except client.handler.timeout_exception:
        if client.was_refused:
            raise AuthFailedError()
        raise

def note_refusal(client, state):
    if state == KeeperState.AUTH_FAILED:
        client.was_refused = True
    session_callback(client, state)

KazooClient.start, KazooClient._session_callback = start_and_tell, note_refusal
`;

/** The program that kazoo calls as `java -cp … -D… org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg`. */
function writeJava(programs: string): void {
  const path = join(programs, 'java');
  writeFileSync(
    path,
    `#!/bin/sh
for configuration; do
  case $configuration in -D*) flags="$flags $configuration" ;; esac
done
export SERVER_JVMFLAGS="$flags -Dzookeeper.clientPortAddress=127.0.0.1 -Dzookeeper.admin.serverAddress=127.0.0.1"
exec ${MEERKAT_IN_SHELL} server "$configuration" > '${programs}'/$$.log 2>&1
`,
  );
  chmodSync(path, 0o755);
}

/** Currently free ports, below the ephemeral range. */
async function findPortOffset(): Promise<number> {
  for (;;) {
    const offset = 10_240 + Math.floor(Math.random() * (32_768 - 10_240 - 30));
    const free = await Promise.all(PORTS.map((port) => isFree(offset + port)));
    if (free.every(Boolean)) return offset;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
