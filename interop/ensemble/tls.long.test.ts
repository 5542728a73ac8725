import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { connect } from '@meerkat/client';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { type Config, Ensemble, type Member } from './ensemble.ts';
import { connectTo, exercise, writeUntilDone } from './workload.ts';

const directory = mkdtempSync(join(tmpdir(), 'quorum-tls-'));
const authority = new CertificateAuthority();
/** Key and trust store: one certificate for all servers, because they have one address. */
const STORES = storesOf(authority, 'member', ['IP:127.0.0.1', 'DNS:localhost']);
const TLS: Config = { sslQuorum: true, ...STORES };
/** Apache's servers open TLS connections sequentially, and time out on a busy machine with a shorter tick. */
const SLOW: Config = { tickTime: 2000 };

let ensemble: Ensemble | undefined;

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') console.log(ensemble?.logs);
  await ensemble?.dispose();
  ensemble = undefined;
});
afterAll(() => rmSync(directory, { recursive: true }));

describe('servers of ours with TLS between them', () => {
  test('form an ensemble, survive leader deaths, and renew their certificate unless the new is invalid', async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], TLS);
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await client.create('/deaths', '0');
    writeFileSync(String(STORES['ssl.quorum.keyStore.location']), authority.issue('renewed', NAMES).keyStore);
    for (const { server } of ensemble.members) {
      await expect.poll(() => server.output).toContain('renewed: ');
      const days = /^zk_ssl_quorum_certificate_days_left\t(\d+)$/m.exec(await server.fourLetterWord('mntr'));
      expect(Number(days?.[1])).toBeGreaterThan(300);
    }
    writeFileSync(String(STORES['ssl.quorum.keyStore.location']), 'nothing');
    for (const { server } of ensemble.members) {
      await expect.poll(() => server.output).toContain('the new files are not used');
    }
    for (let death = 1; death <= 3; death++) {
      const leader = await ensemble.leader();
      await leader.server.kill();
      // The remaining two need new connections, first with the old certificate.
      await writeUntilDone(client, '/deaths', String(death));
      writeFileSync(String(STORES['ssl.quorum.keyStore.location']), authority.issue('again', NAMES).keyStore);
      await leader.server.restart();
    }
  });

  test.each([
    ['speaks plain text among them', true, 'it does not speak TLS, and this port takes nothing else'],
    ['speaks TLS among plain ones', false, 'on the election port: it speaks TLS, and this port does not: both servers'],
  ])('refuse a server that %s, and log it', async (_, isSecure, reason) => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], {
      ...TLS,
      sslQuorum: isSecure,
    });
    const [, , third] = ensemble.members as [Member, Member, Member];
    const others = ensemble.members.slice(0, 2);
    await third.server.kill();
    third.server.reconfigure({ sslQuorum: !isSecure });
    third.server.launch();
    for (const { server } of others) await expect.poll(() => server.output).toContain(reason);
    expect(await ensemble.modeOf(third)).toBeNull();
  });

  test('refuse a server whose certificate names no member or is from another authority', async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], TLS);
    const [, , third] = ensemble.members as [Member, Member, Member];
    const others = ensemble.members.slice(0, 2);
    const wrong = [
      [storesOf(authority, 'elsewhere', ['DNS:elsewhere.example']), 'names no member of the ensemble: 127.0.0.1'],
      [
        { ...STORES, ...keyStoreOf(new CertificateAuthority(), 'stranger', NAMES.names) },
        'no authority of the trust store has issued it',
      ],
    ] as const;
    for (const [stores, reason] of wrong) {
      await third.server.kill();
      third.server.reconfigure(stores);
      third.server.launch();
      await expect.poll(() => others.some(({ server }) => server.output.includes(reason))).toBe(true);
      expect(await ensemble.modeOf(third)).toBeNull();
    }
    await third.server.kill();
    third.server.reconfigure(STORES);
    await third.server.restart();
    await using back = await connectTo(third);
    await back.sync();
  });
});

describe('a flood of unfinished handshakes at the ports between servers', () => {
  test('affects neither the quorum nor clients, and a restarted server rejoins despite it', async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], TLS);
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 20_000 });
    await client.create('/flooded', '0');
    const before = await ensemble.leader();
    const hello = await recordHello();
    const ports = ensemble.members.flatMap(({ quorumPort, electionPort }) => [quorumPort, electionPort]);
    const flood = new Flood(ports, hello);
    try {
      await flood.reached(1680);
      for (let i = 1; i <= 50; i++) await client.set('/flooded', String(i));
      expect((await ensemble.leader()).id).toBe(before.id);
      const other = ensemble.members.find(({ id }) => id !== before.id)!;
      await other.server.kill();
      await client.set('/flooded', 'without it');
      await other.server.restart();
      await using back = await connectTo(other);
      await back.sync();
      expect(new TextDecoder().decode((await back.get('/flooded')).data)).toBe('without it');
    } finally {
      flood.end();
    }
  });
});

testMixed('two servers of Apache and one of ours', ['apache', 'apache', 'meerkat']);
testMixed('one server of Apache and two of ours', ['meerkat', 'meerkat', 'apache']);

function testMixed(title: string, kinds: readonly ServerKind[]): void {
  describeWith(['apache'], `${title} with TLS between them`, () => {
    test('serve one tree under a leader of either kind', async () => {
      ensemble = await Ensemble.start(
        kinds.map((kind) => ({ kind })),
        { ...TLS, ...SLOW },
      );
      for (const kind of ['apache', 'meerkat'] as const) {
        await ensemble.leaderOfKind(kind);
        const [writer, reader] = await Promise.all([ensemble.members[0]!, ensemble.members[2]!].map(connectTo));
        await exercise(writer!, { client: reader!, kind: ensemble.members[2]!.server.kind }, `/under-${kind}`);
        await Promise.all([writer!.close(), reader!.close()]);
      }
      expect(ensemble.logs).not.toContain('refused: between servers');
    });
  });
}

describeWith(['apache'], 'a mixed ensemble without TLS', () => {
  test('migrates to TLS and back by rolling restarts without losing a session or write', async () => {
    const kinds: readonly ServerKind[] = ['apache', 'meerkat', 'meerkat'];
    ensemble = await Ensemble.start(
      kinds.map((kind) => ({ kind })),
      SLOW,
    );
    await using client = await connect(ensemble.connectString, { sessionTimeoutMs: 40_000 });
    const session = client.session?.id;
    await client.create('/steps', '0');
    const both = { ...STORES, portUnification: true };
    const steps: readonly Config[] = [
      { ...both, sslQuorum: false },
      { ...both, sslQuorum: true },
      { ...both, portUnification: false, sslQuorum: true },
      { ...both, sslQuorum: true },
      { ...both, sslQuorum: false },
      { portUnification: false, sslQuorum: false },
    ];
    for (const [step, config] of steps.entries()) {
      for (const { server } of ensemble.members) {
        await server.stop();
        server.reconfigure(config);
        await server.restart();
        await writeUntilDone(client, '/steps', `${step} ${server.port}`);
      }
    }
    expect(client.session?.id).toBe(session);
  });
});

/** Continuous connections to all ports; every other one sends the start of a handshake, the others nothing. */
class Flood {
  readonly #sockets = new Set<Socket>();
  #count = 0;
  #isOver = false;

  constructor(ports: readonly number[], hello: Buffer) {
    for (const port of ports) for (let i = 0; i < CONNECTIONS_PER_PORT; i++) this.#connect(port, hello);
  }

  /** Waits until there were `count` connections. */
  async reached(count: number): Promise<void> {
    await expect.poll(() => this.#count).toBeGreaterThanOrEqual(count);
  }

  end(): void {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(port: number, hello: Buffer): void {
    if (this.#isOver) return;
    const socket = connectTcp(port, '127.0.0.1', () => {
      if (this.#count++ % 2 === 0) socket.write(hello);
    });
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    socket.once('close', () => {
      this.#sockets.delete(socket);
      // Not at once, because the port of a stopped server refuses immediately.
      setTimeout(() => this.#connect(port, hello), 100);
    });
  }
}

/** More than a port's limit of unfinished handshakes. */
const CONNECTIONS_PER_PORT = 280;

/** The ClientHello of Node.js. */
async function recordHello(): Promise<Buffer> {
  const trap = createServer().listen(0, '127.0.0.1');
  await once(trap, 'listening');
  connectTls({ port: (trap.address() as AddressInfo).port, host: '127.0.0.1' }).on('error', () => {});
  const [socket] = (await once(trap, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  trap.close();
  return hello;
}

const NAMES = { names: ['IP:127.0.0.1', 'DNS:localhost'] };

function storesOf(issuer: CertificateAuthority, name: string, names: readonly string[]): Config {
  const path = join(directory, `${name}-trust.pem`);
  writeFileSync(path, issuer.certificate);
  return { ...keyStoreOf(issuer, name, names), 'ssl.quorum.trustStore.location': path };
}

function keyStoreOf(issuer: CertificateAuthority, name: string, names: readonly string[]): Config {
  const path = join(directory, `${name}.pem`);
  writeFileSync(path, issuer.issue(name, { names }).keyStore);
  return { 'ssl.quorum.keyStore.location': path };
}
