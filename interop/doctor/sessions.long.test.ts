import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';
import { TcpProxy } from '@meerkat/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { CLASS_PATH, SHORT_JAVA } from '../harness/java.ts';
import { describeWith } from '../harness/peers.ts';
import { withFullDisk, withSlowLog } from '../harness/preload.ts';
import { SERVER_KINDS, type ServerKind, type ServerOptions, ServerProcess } from '../harness/server-process.ts';
import { at, diagnose, faults } from './diagnosis.ts';

/* Why a session expired, from the logs of servers and of Java's client; why a lock waits; why servers are slow. */

const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});
let count = 0;

function logOf(text: string): string {
  const path = join(directory, `${++count}.log`);
  writeFileSync(path, text);
  return path;
}

/** Java's client, with its slf4j log on standard error. */
class JavaClient {
  readonly child: ChildProcess;
  output = '';

  constructor(port: number, timeoutMs: number) {
    const args = [
      ...[...SHORT_JAVA, '-Xmx128m', '-Dorg.slf4j.simpleLogger.showDateTime=true'],
      '-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS',
      ...['-cp', `${CLASS_PATH}:/usr/share/java/slf4j-simple.jar`, 'org.apache.zookeeper.ZooKeeperMain'],
      ...['-server', `127.0.0.1:${port}`, '-timeout', String(timeoutMs)],
    ];
    this.child = spawn('java', args, { stdio: ['pipe', 'pipe', 'pipe'] });
    children.push(this.child);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
  }

  async session(): Promise<string> {
    return (
      (await this.until(/negotiated timeout = |session id = (0x[0-9a-f]+)/, /session id = (0x[0-9a-f]+)/))[1] ?? ''
    );
  }

  async until(...patterns: readonly RegExp[]): Promise<RegExpExecArray> {
    for (;;) {
      const found = patterns.map((pattern) => pattern.exec(this.output));
      const last = found.at(-1);
      if (found.every((match) => match !== null) && last !== null && last !== undefined) return last;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Also logged for sessions that a client on a busy machine abandoned before they were established. */
const expired = (session: string): RegExp =>
  new RegExp(`session ${session} has expired: nothing received|Expiring session ${session}`);

async function untilSaid(server: ServerProcess, pattern: RegExp): Promise<void> {
  for (const sinceMs = Date.now(); !pattern.test(server.output); ) {
    if (Date.now() - sinceMs > 120_000) throw new Error(`the server has not said ${pattern}:\n${server.output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const start = (kind: ServerKind, more: ServerOptions['config'] = {}): Promise<ServerProcess> =>
  ServerProcess.start(kind, { logs: true, config: { tickTime: 300, ...more } });

describeWith(['apache'], 'doctor reports', () => {
  describe.concurrent.each(SERVER_KINDS)('of a server of %s', (kind) => {
    test('that the client was paused; from the server log alone, that no pings arrived', async ({ expect }) => {
      await using server = await start(kind);
      const client = new JavaClient(server.port, 1500);
      const session = await client.session();
      client.child.kill('SIGSTOP');
      await untilSaid(server, expired(session));
      // Before the client resumes, because its later requests may be in the server's log too.
      const words = ['--no-servers', '--log', logOf(server.output), '--session', session];
      // The client last heard from the server a moment after the server from it, and counts from there.
      await new Promise((resolve) => setTimeout(resolve, 1500));
      client.child.kill('SIGCONT');
      await client.until(/have not heard from server in \d+ms|has expired/);
      expect(await faults(...words)).toEqual(['session-expired-silence']);
      const withClient = [...words, '--client-log', logOf(client.output)];
      expect(await faults(...withClient)).toEqual(['session-expired-client-stalled']);
      client.child.kill('SIGKILL');
    });

    test('that the network was partitioned', async ({ expect }) => {
      await using server = await start(kind);
      await using proxy = await TcpProxy.start({ target: server.port });
      const client = new JavaClient(proxy.port, 3000);
      const session = await client.session();
      proxy.freeze();
      await untilSaid(server, expired(session));
      await client.until(/have not heard from server in \d+ms/);
      const words = ['--no-servers', '--log', logOf(server.output), '--client-log', logOf(client.output)];
      expect(await faults(...words, '--session', session)).toEqual(['session-expired-network']);
      client.child.kill('SIGKILL');
    });

    test('that the client process exited', async ({ expect }) => {
      await using server = await start(kind);
      const client = new JavaClient(server.port, 1500);
      const session = await client.session();
      client.child.kill('SIGKILL');
      await untilSaid(server, expired(session));
      const words = ['--no-servers', '--log', logOf(server.output), '--session', session];
      expect(await faults(...words)).toEqual(['session-expired-client-gone']);
    });

    test('that the server was paused', async ({ expect }) => {
      await using server = await start(kind, {
        'jvm.pause.monitor': true,
        'jvm.pause.info-threshold.ms': 500,
        'jvm.pause.warn-threshold.ms': 500,
      });
      const client = new JavaClient(server.port, 1500);
      const session = await client.session();
      await server.pause();
      await client.until(/have not heard from server in/);
      client.child.kill('SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, 1500));
      server.resume();
      await untilSaid(server, expired(session));
      await untilSaid(server, /stood still for|pause of approximately/);
      const words = ['--no-servers', '--log', logOf(server.output), '--session', session];
      expect(await faults(...words)).toEqual(['server-stalled', 'session-expired-server-stalled']);
    });

    test('that the logs do not mention a session', async ({ expect }) => {
      const words = ['--no-servers', '--log', logOf(''), '--session', '0x1234'];
      expect(await faults(...words)).toEqual(['session-not-found']);
    });

    test('who holds a lock, and that a holder is disconnected, not a session, or missing', async ({ expect }) => {
      await using server = await ServerProcess.start(kind);
      const servers = `127.0.0.1:${server.port}`;
      const [holder, waiter] = await Promise.all([connect({ servers }), connect({ servers })]);
      const lock = await new Mutex(holder, '/locks/job').acquire();
      const waiting = new Mutex(waiter, '/locks/job').acquire();
      await expect.poll(async () => (await holder.children('/locks/job')).children.length).toBe(2);
      const ask = [...at(server), '--no-servers', '--lock'];
      const { findings } = await diagnose(...ask, '/locks/job');
      expect(findings).toEqual([
        expect.objectContaining({
          fault: 'lock-held',
          found: expect.stringMatching(/connected from 127\.0\.0\.1:\d+; .* 1 wait behind/),
        }),
      ]);
      await lock.release();
      await (await waiting).release();
      expect((await diagnose(...ask, '/locks/job')).findings.map(({ fault }) => fault)).toEqual(['lock-free']);
      expect(await faults(...ask, '/locks/none')).toEqual(['lock-path-missing']);
      await holder.create('/locks/job/lock-', '', { sequential: true });
      expect(await faults(...ask, '/locks/job')).toEqual(['lock-not-ephemeral']);

      // The holder's process is gone, and its session remains for a minute.
      const gone = new JavaClient(server.port, 60_000);
      await gone.session();
      gone.child.stdin?.write('create /away x\ncreate -e -s /away/lock- x\n');
      await expect
        .poll(async () => (await holder.children('/away').catch(() => ({ children: [] }))).children.length)
        .toBe(1);
      gone.child.kill('SIGKILL');
      await expect.poll(() => faults(...ask, '/away')).toEqual(['lock-holder-away']);
      await Promise.all([holder.close(), waiter.close()]);
    });

    test('that fsyncs exceed the warning threshold', async ({ expect }) => {
      await using server = await start(kind, { 'fsync.warningthresholdms': 0 });
      const client = await connect(`127.0.0.1:${server.port}`);
      await client.create('/busy', '');
      while (!/fsync-ing|writing and syncing/.test(server.output)) await client.set('/busy', 'x'.repeat(100_000));
      await client.close();
      expect(await faults('--no-servers', '--log', logOf(server.output))).toEqual(['disk-slow']);
    });
  });

  test('that a session was closed, which is not a fault', async () => {
    await using server = await ServerProcess.start('meerkat', {
      env: { MEERKAT_LOG_LEVEL: 'debug', MEERKAT_LOG: 'json' },
    });
    const client = await connect(`127.0.0.1:${server.port}`);
    const session = `0x${client.session?.id.toString(16)}`;
    await client.close();
    await untilSaid(server, /its session is closed/);
    const { findings, exitCode } = await diagnose('--no-servers', '--log', logOf(server.output), '--session', session);
    expect({ exitCode, faults: findings.map(({ fault }) => fault) }).toEqual({
      exitCode: 0,
      faults: ['session-closed'],
    });
  });

  test('that a disk is slow, and that requests are slow or queue up', async () => {
    await using server = await ServerProcess.start('meerkat', {
      env: withSlowLog(400),
      config: { globalOutstandingLimit: 5000 },
    });
    const client = await connect(`127.0.0.1:${server.port}`);
    for (let i = 0; i < 6; i++) await Promise.all([1, 2, 3, 4, 5, 6].map((n) => client.create(`/${i}-${n}`, '')));
    expect(await faults(...at(server), '--no-sessions')).toEqual(['disk-slow', 'server-slow']);
    const writes = Array.from({ length: 1500 }, () => client.create('/many-', '', { sequential: true }));
    await expect
      .poll(() => faults(...at(server), '--no-sessions'), { timeout: 60_000, interval: 20 })
      .toContain('requests-waiting');
    await Promise.all(writes);
    await client.close();
  });

  test('that a disk is full, that file descriptors run out', async () => {
    const mark = join(directory, 'full');
    await using full = await ServerProcess.start('meerkat', { env: withFullDisk(mark) });
    writeFileSync(mark, '');
    await connect(`127.0.0.1:${full.port}`, { connectTimeoutMs: 2000 }).catch(() => {});
    await untilSaid(full, /ENOSPC|no space/i);
    expect(await faults('--no-servers', '--log', logOf(full.output))).toEqual(['disk-full']);

    await using small = await ServerProcess.start('meerkat', { descriptorsMax: 120 });
    const clients = await Promise.allSettled(
      Array.from({ length: 130 }, () => connect(`127.0.0.1:${small.port}`, { connectTimeoutMs: 3000 })),
    );
    expect(await faults('--no-servers', '--log', logOf(small.output))).toEqual(['descriptors-short']);
    await Promise.all(clients.map((client) => (client.status === 'fulfilled' ? client.value.close() : null)));
  });

  test('that a server answers but does not create sessions', async () => {
    const config = {
      connection_throttle_tokens: 1,
      connection_throttle_fill_time: 3_600_000,
      connection_throttle_fill_count: 1,
    };
    await using server = await ServerProcess.start('apache', { config });
    const client = await connect(`127.0.0.1:${server.port}`);
    expect(await faults(...at(server))).toEqual(['session-refused']);
    await client.close();
  });
});
