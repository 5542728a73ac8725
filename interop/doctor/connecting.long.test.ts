import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { RunningCommand } from '../cli/harness.ts';
import { describeWith } from '../harness/peers.ts';
import { withCode } from '../harness/preload.ts';
import { freePort, SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { at, diagnose, faults } from './diagnosis.ts';

/* Why a client cannot connect: each fault is staged with real processes, and doctor must report exactly that one. */

const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const PATIENCE = { timeout: 60_000, interval: 200 };

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const HOUR_MS = 3_600_000;
const authority = new CertificateAuthority();
const names = ['IP:127.0.0.1', 'DNS:localhost'];
const ca = file('ca.pem', authority.certificate);
const foreignCa = file('foreign-ca.pem', new CertificateAuthority('another').certificate);
const client = authority.issue('client');
const asClient = ['--tls-cert', file('client.pem', client.certificate), '--tls-key', file('client.key', client.key)];

describeWith(['apache'], 'doctor reports why a client cannot connect', () => {
  describe.each(SERVER_KINDS)('to a server of %s', (kind) => {
    let plain: ServerProcess;
    let secure: ServerProcess;
    let misnamed: ServerProcess;
    let expired: ServerProcess;
    let closed: ServerProcess;

    const withStore = (name: string, options: Parameters<typeof authority.issue>[1]): Promise<ServerProcess> => {
      const keyStorePath = file(`${kind}-${name}.pem`, authority.issue(name, options).keyStore);
      return ServerProcess.start(kind, { tls: { keyStorePath, trustStorePath: ca } });
    };

    beforeAll(async () => {
      const now = Date.now();
      const sasl = { sessionRequireClientSASLAuth: true };
      [plain, secure, misnamed, expired, closed] = await Promise.all([
        ServerProcess.start(kind, { config: { maxClientCnxns: 12 } }),
        withStore('secure', { names }),
        withStore('misnamed', { names: ['DNS:zk.example.org'] }),
        // Our server does not start with an expired certificate.
        withStore('expired', {
          names,
          ...(kind === 'apache' ? { validToMs: now - HOUR_MS } : { validFromMs: now + HOUR_MS }),
        }),
        ServerProcess.start(kind, { saslUsers: { bob: 'builder' }, config: sasl }),
      ]);
    });
    afterAll(() => Promise.all([plain, secure, misnamed, expired, closed].map((server) => server?.dispose())));

    const secured = (server: ServerProcess, ...words: string[]): Promise<string[]> =>
      faults(...at(server.securePort), '--tls-ca', ca, ...asClient, ...words);

    test('nothing is wrong', async () => {
      expect(await diagnose(...at(plain))).toEqual({ exitCode: 0, findings: [] });
      expect(await secured(secure)).toEqual([]);
    });

    test('nothing listens on the port', async () => {
      expect(await faults(...at(await freePort()))).toEqual(['port-closed']);
    });

    test('the process is stopped', async () => {
      await plain.pause();
      expect(await faults(...at(plain), '--timeout', '700ms')).toEqual(['server-silent']);
      plain.resume();
    });

    test('the port uses TLS, and the client does not', async () => {
      expect(await faults(...at(secure.securePort), '--timeout', '1s')).toEqual(['tls-expected']);
    });

    test('the port does not use TLS', async () => {
      expect(await faults(...at(plain), '--tls-ca', ca)).toEqual(['tls-not-spoken']);
    });

    test('the authority of its certificate is not trusted', async () => {
      const words = ['--tls-ca', foreignCa, ...asClient];
      expect(await faults(...at(secure.securePort), ...words)).toEqual(['certificate-authority-unknown']);
    });

    test('its certificate is for another name', async () => {
      expect(await secured(misnamed)).toEqual(['certificate-name-differs']);
    });

    test('its certificate has expired, or is not valid yet', async () => {
      expect(await secured(expired)).toEqual(['certificate-expired']);
    });

    test('it requires a client certificate', async () => {
      expect(await faults(...at(secure.securePort), '--tls-ca', ca)).toEqual(['certificate-missing']);
    });

    test('client and server have no common TLS version', async () => {
      // The default of Node.js, here and in the command.
      const keyStorePath = file(`${kind}-old.pem`, authority.issue('old', { names }).keyStore);
      const config = { 'ssl.enabledProtocols': 'TLSv1.2' };
      await using old = await ServerProcess.start(kind, { tls: { keyStorePath, trustStorePath: ca }, config });
      const command = ['doctor', ...at(old.securePort), '--tls-ca', ca, ...asClient, '-o', 'ndjson'];
      const env = { NODE_OPTIONS: '--tls-min-v1.3' };
      const ended = await new RunningCommand(command, { env }, false).ended;
      expect(ended.stdout, ended.stderr).toMatch(/^\{"fault":"tls-versions-differ"/);
    });

    test('it serves authenticated clients only, or refuses the credentials', async () => {
      expect(await faults(...at(closed))).toEqual(['authentication-required']);
      expect(await faults(...at(closed), '--sasl', 'bob:builder')).toEqual([]);
      expect(await faults(...at(closed), '--sasl', 'bob:wrong')).toEqual(['credentials-refused']);
    });

    test('the chroot of the connect string does not exist', async () => {
      expect(await faults('--server', `127.0.0.1:${plain.port}/nowhere`)).toEqual(['chroot-missing']);
      expect(await faults(...at(plain), '--chroot', '/nowhere')).toEqual(['chroot-missing']);
    });

    test('the ACL denies READ to the client, which is a note', async () => {
      const admin = await connect(`127.0.0.1:${plain.port}`);
      const acl = [{ perms: 31, scheme: 'digest', id: 'ann:zEwfeoXyQEqGJtBYXPZ1QbDpXZI=' }];
      await admin.create('/closed', '', { acl });
      await admin.close();
      const { exitCode, findings } = await diagnose('--server', `127.0.0.1:${plain.port}/closed`);
      expect({ exitCode, faults: findings.map(({ fault }) => fault) }).toEqual({
        exitCode: 0,
        faults: ['root-not-readable'],
      });
    });

    test('a four-letter word is not allowed, which is a note', async () => {
      await using quiet = await ServerProcess.start(kind, { config: { '4lw.commands.whitelist': 'srvr' } });
      const { exitCode, findings } = await diagnose(...at(quiet));
      expect({ exitCode, faults: findings.map(({ fault }) => fault) }).toEqual({
        exitCode: 0,
        faults: ['word-not-allowed'],
      });
    });

    test('its address has reached the connection limit; the log says why', async () => {
      await using small = await ServerProcess.start(kind, { config: { maxClientCnxns: 3 }, logs: true });
      // With sessions, so that the server counts these, and not the harness's last probe.
      const clients = await Promise.all([1, 2, 3].map(() => connect(`127.0.0.1:${small.port}`)));
      expect(await faults(...at(small))).toEqual(['closed-at-once']);
      await vi.waitFor(async () => {
        const log = file(`${kind}-small.log`, small.output);
        expect(await faults('--no-servers', '--log', log)).toEqual(['too-many-connections']);
      }, PATIENCE);
      await Promise.all(clients.map((one) => one.close()));
    });

    test('a client sends more than the server accepts', async () => {
      await using small = await ServerProcess.start(kind, { logs: true });
      const socket = connectTcp({ port: small.port, host: '127.0.0.1' }).on('error', () => {});
      socket.write(Buffer.from([0x7f, 0xff, 0xff, 0xff]));
      socket.resume();
      await once(socket, 'close');
      // The line may be logged after the connection has ended.
      await vi.waitFor(async () => {
        const log = file(`${kind}-long.log`, small.output);
        expect(await faults('--no-servers', '--log', log)).toEqual(['request-too-long']);
      }, PATIENCE);
    });
  });

  test('another service answers on the port', async () => {
    const http = createServer((_, response) => response.end('hello'));
    await once(http.listen(0, '127.0.0.1'), 'listening');
    expect(await faults(...at((http.address() as AddressInfo).port))).toEqual(['not-zookeeper']);
    http.close();
  });

  test('no answer where packets are dropped', async () => {
    // The kernel drops packets to a full accept queue of a process that never accepts.
    const program =
      'import socket,time\ns=socket.socket()\ns.bind(("127.0.0.1",0))\ns.listen(0)\nprint(s.getsockname()[1],flush=True)\ntime.sleep(600)';
    const child = spawn('/usr/bin/python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(line.toString());
    const dial = (): Socket => connectTcp({ port, host: '127.0.0.1' }).on('error', () => {});
    const sockets = [dial()];
    await once(sockets[0] as Socket, 'connect');
    for (let i = 0; i < 3; i++) sockets.push(dial());
    expect(await faults(...at(port), '--timeout', '700ms')).toEqual(['no-route']);
    for (const socket of sockets) socket.destroy();
    child.kill('SIGKILL');
  });

  test('the name is unknown, or the name service does not answer', async () => {
    const diagnosisOf = (code: string): Promise<string> => {
      const patch = `import dns from 'node:dns/promises';import {syncBuiltinESMExports} from 'node:module';dns.lookup=async()=>{throw Object.assign(new Error('staged'),{code:'${code}'})};syncBuiltinESMExports()`;
      const env = withCode(patch);
      return new RunningCommand(['doctor', '--server', 'zk.example.org', '-o', 'fields'], { env }, false).ended.then(
        ({ stdout }) => stdout,
      );
    };
    const [unknown, silent] = await Promise.all([diagnosisOf('ENOTFOUND'), diagnosisOf('EAI_AGAIN')]);
    expect(unknown).toMatch(/^name-unknown\t/);
    expect(silent).toMatch(/^name-service-silent\t/);
  });

  test('one address of the name is dead', async () => {
    await using server = await ServerProcess.start('meerkat');
    const patch = `import dns from 'node:dns/promises';import {syncBuiltinESMExports} from 'node:module';dns.lookup=async()=>[{address:'127.0.0.1',family:4},{address:'127.0.0.77',family:4}];syncBuiltinESMExports()`;
    const env = withCode(patch);
    const args = ['doctor', '--server', `localhost:${server.port}`, '-o', 'fields', '--no-sessions'];
    const { stdout, exitCode } = await new RunningCommand(args, { env }, false).ended;
    expect(stdout).toMatch(/^address-dead\t/);
    expect(exitCode).toBe(1);
  });

  test('a server that fails during its start is recognized by its log', async () => {
    const silent = createTcpServer((socket) => void socket.on('error', () => {}).once('data', () => socket.destroy()));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    expect(await faults(...at((silent.address() as AddressInfo).port))).toEqual(['closed-at-once']);
    silent.close();
  });
});
