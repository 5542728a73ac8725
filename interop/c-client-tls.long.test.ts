import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, connect } from '@meerkat/client';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { converse, MULTI_THREADED_SCRIPT, SINGLE_THREADED_SCRIPT } from './c-client/conversation.ts';
import { buildCClient, type CClient } from './c-client/with-tls.ts';
import { Ensemble, THREADED } from './ensemble/ensemble.ts';
import { ForeignClient } from './ensemble/foreign-client.ts';
import { expectSessionKept, ownerOf, type SessionOwner, startClient } from './ensemble/session-owner.ts';
import { writeUntilDone } from './ensemble/workload.ts';
import { ConsoleProcess } from './harness/console-process.ts';
import { describeWith } from './harness/peers.ts';
import { type ServerKind, ServerProcess, type TlsStores } from './harness/server-process.ts';

const SINGLE_THREADED = fileURLToPath(new URL('./c-client/single_threaded.py', import.meta.url));
const LIBRARIES = ['threaded', 'single-threaded'] as const;
type Library = (typeof LIBRARIES)[number];
const KINDS = ['cliMt', 'libzookeeperSt'] as const;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

describeWith(['cClientSources'], 'the C client with TLS', () => {
  const directory = mkdtempSync(join(tmpdir(), 'c-client-tls-'));
  const authority = new CertificateAuthority();
  const stranger = new CertificateAuthority();
  const trustStorePath = write('authority.pem', authority.certificate);
  const strangersPath = write('stranger.pem', stranger.certificate);
  const keyStorePath = write('server.pem', authority.issue('server', { names: ['IP:127.0.0.1'] }).keyStore);
  /** Certificates of this authority, and of one that the server does not trust. */
  const known = filesOf(authority, 'known');
  const unknown = filesOf(stranger, 'unknown');
  let built: CClient;

  beforeAll(async () => {
    built = await buildCClient();
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const CONVERSATIONS = VERSIONS.flatMap((version) =>
    LIBRARIES.flatMap((library) => [
      { title: `${library}, ${version}, certificates on both sides`, library, version, clientAuth: 'need' as const },
      {
        title: `${library}, ${version}, the server's certificate alone`,
        library,
        version,
        clientAuth: 'none' as const,
      },
    ]),
  );

  test.each(CONVERSATIONS)('has a complete session: $title', async (conversation) => {
    await talk('meerkat', conversation);
  });

  test.each(LIBRARIES)('has a complete session at an I/O thread: %s', async (library) => {
    await talk('meerkat', { library, version: 'TLSv1.3', clientAuth: 'need' }, THREADED.env);
  });

  describeWith(['apache'], "at Apache's server", () => {
    test.each(LIBRARIES)('has a complete session: %s', async (library) => {
      await talk('apache', { library, version: 'TLSv1.2', clientAuth: 'need' });
    });
  });

  async function talk(
    kind: ServerKind,
    {
      library,
      version,
      clientAuth,
    }: { readonly library: Library; readonly version: string; readonly clientAuth: 'none' | 'need' },
    env: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const tls: TlsStores = { keyStorePath, trustStorePath, clientAuth };
    const config = { 'ssl.protocol': version, 'ssl.enabledProtocols': version };
    await using server = await ServerProcess.start(kind, { tls, config, env });
    // It always has a certificate; a server that does not request it does not see it.
    const files = clientAuth === 'none' ? unknown : known;
    await using shell = start(library, server, `${trustStorePath},${files}`);
    const isThreaded = library === 'threaded';
    const script = isThreaded ? MULTI_THREADED_SCRIPT : SINGLE_THREADED_SCRIPT;
    expect(await converse(shell, isThreaded ? /CONNECTED_STATE/ : /connected/, script)).toBe(0);
    // It has closed its session, and did not lose its connection.
    expect(await server.fourLetterWord('mntr')).toMatch(/^zk_ephemerals_count\t0$/m);
    expect(shell.output).not.toMatch(/CONNECTING_STATE|not connected/);
  }

  test.each(VERSIONS)(
    'is refused when one side has a wrong authority, and the log says which side (%s)',
    async (version) => {
      const config = { 'ssl.protocol': version, 'ssl.enabledProtocols': version };
      await using server = await ServerProcess.start('meerkat', { tls: { keyStorePath, trustStorePath }, config });
      for (const library of LIBRARIES) {
        for (const [files, reason] of [
          [`${trustStorePath},${unknown}`, 'its certificate is refused: no authority of the trust store has issued it'],
          [
            `${strangersPath},${known}`,
            'it refuses the certificate of this server: no authority of its own trust store has issued it',
          ],
        ] as const) {
          const before = server.output.length;
          await using shell = start(library, server, files);
          await expect.poll(() => server.output.slice(before)).toContain(reason);
          const line = new RegExp(
            `WARN  client 127\\.0\\.0\\.1:\\d+ refused: ${reason}( \\(and \\d+ more before\\))?$`,
            'm',
          );
          expect(server.output.slice(before)).toMatch(line);
          expect(shell.output).not.toMatch(/(?<!not )connected|CONNECTED_STATE/);
        }
      }
    },
  );

  test('recovers its session, ephemerals and watches after the server was killed', async () => {
    await using server = await ServerProcess.start('meerkat', { tls: { keyStorePath, trustStorePath } });
    await using control = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 30_000 });
    await control.create('/watched', 'before');
    const tls = { ...built, files: `${trustStorePath},${known}` };
    const owners: SessionOwner[] = [];
    try {
      for (const kind of KINDS) {
        const client = await ForeignClient.start(kind, [`127.0.0.1:${server.securePort}`], `/${kind}`, { tls });
        owners.push({ client, session: await ownerOf(control, `${client.root}/mine`) });
      }
      await Promise.all(owners.map(({ client }) => client.watch('/watched', 'before')));
      await server.restart();
      await writeUntilDone(control, '/watched', 'after');
      await expectAlive(owners, control);
    } finally {
      for (const { client } of owners) await client.kill();
    }
  });

  test('keeps its session, ephemerals and watches in an ensemble whose leader is killed, connected to it or to a follower', async () => {
    const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], {
      'client.portUnification': true,
      'ssl.keyStore.location': keyStorePath,
      'ssl.trustStore.location': trustStorePath,
    });
    const owners: SessionOwner[] = [];
    try {
      await using control = await connect(ensemble.connectString, { sessionTimeoutMs: 30_000 });
      await control.create('/watched', 'before');
      const leader = await ensemble.leader();
      const follower = ensemble.members.find((member) => member !== leader)!;
      const tls = { ...built, files: `${trustStorePath},${known}` };
      for (const kind of KINDS) {
        for (const member of [leader, follower]) {
          const owner = await startClient(kind, ensemble, member, `/${kind}-${member.id}`, control, { tls });
          owners.push(owner);
          expect(await ensemble.memberOf(owner.session)).toBe(member);
        }
      }
      await Promise.all(owners.map(({ client }) => client.watch('/watched', 'before')));
      await leader.server.kill();
      await writeUntilDone(control, '/watched', 'after');
      await expectAlive(owners, control);
    } catch (error) {
      console.log(ensemble.logs, ...owners.map(({ client }) => client.output));
      throw error;
    } finally {
      for (const { client } of owners) await client.kill();
      await ensemble.dispose();
    }
  });

  /** Checks that each client has its session with ephemerals and watches, and closes it. */
  async function expectAlive(owners: readonly SessionOwner[], control: Client): Promise<void> {
    await Promise.all(owners.map((owner) => expectSessionKept(owner, 1, control)));
    for (const { client } of owners) {
      expect(await client.quit()).toBe(0);
      expect(await control.exists(`${client.root}/mine`)).toBeNull();
    }
  }

  function start(library: Library, server: ServerProcess, files: string): ConsoleProcess {
    const address = `127.0.0.1:${server.securePort}`;
    return library === 'threaded'
      ? new ConsoleProcess(built.shell, ['-h', address, '-s', files])
      : new ConsoleProcess('/usr/bin/python3', [SINGLE_THREADED, address, '30000', built.library, files]);
  }

  /** Files of a client: `certificate,key,password`. */
  function filesOf(issuer: CertificateAuthority, name: string): string {
    const { certificate, key } = issuer.issue(name);
    return `${write(`${name}.crt`, certificate)},${write(`${name}.key`, key)},none`;
  }

  function write(name: string, text: string): string {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  }
});
