import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { RawClient } from '../harness/raw-client.ts';
import { Ensemble, type Place } from './ensemble.ts';
import { writeUntilDone } from './workload.ts';

const SECRET = 'the first secret of this ensemble 0123456789';
const NEXT = 'the second secret of this ensemble 012345678';

let directory: string;
let ensemble: Ensemble;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'interop-secrets-'));
});
afterEach(async () => {
  await ensemble?.dispose();
  rmSync(directory, { recursive: true, force: true });
});

/** Independent implementation of Apache's formula: the first 16 bytes of java.util.Random. */
function guess(sessionId: bigint): Buffer {
  const password = Buffer.alloc(16);
  let state = (sessionId ^ 0xb3415c00n ^ 0x5deece66dn) & ((1n << 48n) - 1n);
  for (let i = 0; i < 16; i += 4) {
    state = (state * 0x5deece66dn + 0xbn) & ((1n << 48n) - 1n);
    password.writeUInt32LE(Number((state >> 16n) & 0xffffffffn), i);
  }
  return password;
}

describeWith(['apache'], 'secrets of sessions', () => {
  test('are introduced by rolling restarts with an Apache server, and renewed, without losing a session', async () => {
    const file = join(directory, 'secrets');
    const places: Place[] = [{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'apache' }];
    ensemble = await Ensemble.start(places);
    const [, , apache] = ensemble.members;
    await using client = await connect(ensemble.connectString, {
      sessionTimeoutMs: 60_000,
      backOff: { minMs: 5, maxMs: 50 },
    });
    await client.create('/ephemeral', 'x', { mode: 'ephemeral' });
    await client.create('/steps', '0');
    const sessionId = client.session?.id ?? 0n;

    let step = 0;
    const roll = async (secrets: string): Promise<void> => {
      writeFileSync(file, secrets);
      for (const { server } of ensemble.members) {
        if (server.kind === 'apache') continue;
        server.reconfigure({ 'session.secretFile': file });
        await server.restart();
        step++;
        await writeUntilDone(client, '/steps', String(step));
      }
    };
    // While an Apache server is a member, passwords are derived with its formula.
    await roll(`apache\n${SECRET}`);
    await apache!.server.stop();
    await apache!.server.restart('meerkat');
    await roll(`apache\n${SECRET}`);
    await roll(`${SECRET}\napache`);
    await roll(SECRET);
    // No server creates passwords that another one does not accept yet.
    await roll(`${SECRET}\n${NEXT}`);
    await roll(`${NEXT}\n${SECRET}`);
    await roll(NEXT);
    expect(client.session?.id).toBe(sessionId);
    expect((await client.exists('/ephemeral'))?.ephemeralOwner).toBe(sessionId);

    // Knowing a session id is no longer enough to take it over.
    for (const { server } of ensemble.members) {
      const password = guess(sessionId);
      await expect(RawClient.connect(server.port, { sessionId, password })).rejects.toThrow(/refused/);
    }
    expect((await client.exists('/ephemeral'))?.ephemeralOwner).toBe(sessionId);
  });

  test("are not needed to take over a session where passwords use Apache's formula", async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'apache' }]);
    const [one, two] = ensemble.members;
    // At the same server, the client could reconnect before the thief is answered, and supersede it.
    await using client = await connect(`127.0.0.1:${two!.server.port}`, { sessionTimeoutMs: 60_000 });
    const sessionId = client.session?.id ?? 0n;
    const thief = await RawClient.connect(one!.server.port, { sessionId, password: guess(sessionId) });
    expect(thief.sessionId).toBe(sessionId);
    thief.destroy();
  });
});
