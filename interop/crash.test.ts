import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Ledger } from './crash/ledger.ts';
import { Random } from './differential/random.ts';
import { isLong } from './harness/long.ts';
import { describeWith } from './harness/peers.ts';
import { RawClient } from './harness/raw-client.ts';
import { type ServerKind, ServerProcess } from './harness/server-process.ts';

const WRITERS = 2;

interface Case {
  readonly name: string;
  readonly kind: ServerKind;
  readonly crashes: number;
  readonly config?: Readonly<Record<string, number | string>>;
  /** Suffix of snapshot names. */
  readonly suffix?: string;
}

const CASES: readonly Case[] = [
  { name: 'apache', kind: 'apache', crashes: 1 },
  { name: 'meerkat', kind: 'meerkat', crashes: isLong ? 5 : 3 },
  { name: 'meerkat with an I/O thread', kind: 'meerkat', crashes: isLong ? 3 : 1, config: { clientThreads: 1 } },
  {
    name: 'meerkat with compressed snapshots',
    kind: 'meerkat',
    crashes: isLong ? 6 : 1,
    config: { 'snapshot.compression.method': 'gz', snapCount: 100 },
    suffix: '.gz',
  },
];

for (const { name, kind, crashes, config = {}, suffix = '' } of CASES) {
  describeWith(kind === 'apache' ? ['apache'] : [], `a server killed while it is written to (${name})`, () => {
    test(`has every acknowledged write after each of ${crashes} restarts`, async () => {
      // Snapshots are taken continuously, so that some crashes happen during one.
      await using server = await ServerProcess.start(kind, { config: { snapCount: 200, ...config } });
      const ledger = new Ledger();
      await ledger.prepare(server.port);
      let sessions = await Promise.all(
        Array.from({ length: WRITERS }, () => RawClient.connect(server.port, { timeoutMs: 60_000 })),
      );
      const random = new Random(7);
      for (let crash = 0; crash < crashes; crash++) {
        await writeUntilKilled(server, ledger, sessions, 50 + random.below(400));
        await server.restart();
        // The sessions are resumed too, with their ephemerals.
        sessions = await Promise.all(sessions.map((session) => reconnect(server.port, session)));
        for (const session of sessions) await ledger.check(session);
      }
      expect(ledger.acknowledged).toBeGreaterThan(50 * crashes);
      const files = readdirSync(join(server.dataDirectory, 'version-2'));
      expect(files.filter((name) => name.startsWith('snapshot.') && name.endsWith(suffix)).length).toBeGreaterThan(1);
      for (const session of sessions) await session.close();
    });
  });
}

/** Kills the server after some number of replies, while many requests are in flight. */
async function writeUntilKilled(
  server: ServerProcess,
  ledger: Ledger,
  sessions: readonly RawClient[],
  replies: number,
): Promise<void> {
  const killAt = ledger.acknowledged + replies;
  let killed: Promise<void> | null = null;
  const onAcknowledged = (): void => {
    if (ledger.acknowledged >= killAt) killed ??= server.kill();
  };
  await Promise.all(sessions.map((session, i) => ledger.write(session, i, onAcknowledged)));
  await killed;
}

async function reconnect(port: number, session: RawClient): Promise<RawClient> {
  const client = await RawClient.connect(port, session.credentials);
  expect(client.sessionId).toBe(session.sessionId);
  return client;
}
