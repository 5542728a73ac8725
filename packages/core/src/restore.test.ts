import { CreateMode, ErrorCode, OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ask, create } from './testing/core-requests.ts';
import { PLAIN_AUTHENTICATOR } from './testing/plain-authenticator.ts';
import { type TestClient, TestServer } from './testing/test-server.ts';

const DIRECTORY = '/data/version-2';
const UPLOAD = `${DIRECTORY}/unfinished-snapshot.restore`;

function exists(server: TestServer, path: string): boolean {
  return ask(server, server.connect(), { op: OpCode.exists, path, watch: false }) === ErrorCode.ok;
}

/** A server with /then and an ephemeral of `client`, a snapshot of that at UPLOAD, and /now created after it. */
function serverWithPast(): { server: TestServer; client: TestClient; zxid: Zxid; lastZxid: Zxid } {
  const server = new TestServer();
  const client = server.connect();
  expect(ask(server, client, create('/then'))).toBe(ErrorCode.ok);
  expect(ask(server, client, create('/e', CreateMode.ephemeral))).toBe(ErrorCode.ok);
  let zxid = -1;
  server.core.takeSnapshot((snapshot) => {
    zxid = snapshot?.zxid ?? -1;
    server.disk.poke(UPLOAD, server.disk.peek(snapshot?.path ?? '') ?? new Uint8Array(0));
  });
  server.run();
  expect(ask(server, client, create('/now'))).toBe(ErrorCode.ok);
  return { server, client, zxid: zxid as Zxid, lastZxid: server.core.view.lastZxid as Zxid };
}

describe('a standalone server that restores a snapshot', () => {
  test('has the contents of the snapshot, at a zxid that it never had, also after a crash', () => {
    const { server, client, zxid, lastZxid } = serverWithPast();
    const results: unknown[] = [];
    server.core.restore({ path: UPLOAD, zxid }, (error) => results.push(error));
    server.run();
    expect(results).toEqual([null]);
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
    const newZxid = server.core.view.lastZxid;
    expect(newZxid).toBe(lastZxid + 1);
    const back = server.open();
    back.connect({ session: client.session!, lastZxidSeen: lastZxid });
    server.run();
    expect(back.takeArrivals()[0]).toMatchObject({ kind: 'session', response: { sessionId: client.session!.id } });
    expect(ask(server, back, create('/later'))).toBe(ErrorCode.ok);
    for (const [path, isThere] of [
      ['/then', true],
      ['/e', true],
      ['/now', false],
      ['/later', true],
    ] as const)
      expect([path, exists(server, path)]).toEqual([path, isThere]);
    server.disk.crash();
    const next = new TestServer({}, server.disk, server.clock);
    next.run();
    expect(next.failure).toBeNull();
    expect(exists(next, '/later')).toBe(true);
    expect(exists(next, '/now')).toBe(false);
    expect(next.disk.names(DIRECTORY).filter((name) => name.startsWith('replaced-1-'))).not.toEqual([]);
  });

  test('starts with the complete old or new history, at whatever point the machine crashes', () => {
    const outcomes = new Set<boolean>();
    for (let effects = 0; ; effects++) {
      for (const survivors of ['nothing', 'everything'] as const) {
        const { server, zxid } = serverWithPast();
        let isDone = false;
        server.core.restore({ path: UPLOAD, zxid }, () => {
          isDone = true;
        });
        for (let i = 0; i < effects && !isDone; i++) {
          server.core.onTurnEnd();
          server.disk.deliver();
        }
        server.disk.crash(survivors);
        const next = new TestServer({}, server.disk, server.clock);
        next.run();
        expect(next.failure).toBeNull();
        expect(exists(next, '/then')).toBe(true);
        const isNew = !exists(next, '/now');
        if (isDone) expect(isNew).toBe(true);
        outcomes.add(isNew);
        expect(next.disk.names(DIRECTORY)).not.toContain('unfinished-snapshot.restore');
        if (isDone && survivors === 'everything') {
          expect(outcomes.size).toBe(2);
          return;
        }
      }
    }
  });

  test('continues unchanged when the snapshot is corrupt or truncated anywhere', () => {
    const { server, client, zxid } = serverWithPast();
    const whole = server.disk.peek(UPLOAD)!.slice();
    const results: (Error | null)[] = [];
    const places = Array.from(whole.keys()).filter((at) => at % 11 === 0 || at > whole.length - 48);
    for (const at of places) {
      const flipped = whole.slice();
      flipped[at]! ^= 4;
      for (const damaged of [flipped, whole.slice(0, at)]) {
        server.disk.poke(UPLOAD, damaged);
        server.core.restore({ path: UPLOAD, zxid }, (error) => results.push(error));
        server.run();
      }
    }
    expect(results).toHaveLength(2 * places.length);
    // Truncated after the last part that versions before 3.9 write, it is complete.
    expect(results.filter((error) => error === null).length).toBeLessThan(3);
    expect(server.failure).toBeNull();
    const late = results.includes(null) ? server.connect() : client;
    expect(ask(server, late, create('/more'))).toBe(ErrorCode.ok);
  });

  test('can be stopped at any point', () => {
    for (let effects = 0; effects < 40; effects++) {
      const { server, zxid } = serverWithPast();
      server.core.restore({ path: UPLOAD, zxid }, () => {});
      for (let i = 0; i < effects; i++) {
        server.core.onTurnEnd();
        server.disk.deliver();
      }
      server.stop();
      expect([effects, server.isStopped]).toEqual([effects, true]);
    }
  });

  test('refuses a snapshot whose ACLs it cannot enforce', () => {
    const { server: before, zxid } = serverWithPast();
    before.disk.crash();
    let refusal: string | null = null;
    const authenticator = { ...PLAIN_AUTHENTICATOR, refusalOf: () => refusal };
    const server = new TestServer({}, before.disk, before.clock, authenticator);
    server.run();
    server.disk.poke(UPLOAD, server.disk.peek(`${DIRECTORY}/snapshot.${zxid.toString(16)}`) ?? new Uint8Array(0));
    refusal = 'no such scheme';
    const results: (Error | null)[] = [];
    server.core.restore({ path: UPLOAD, zxid }, (error) => results.push(error));
    server.run();
    expect(results).toEqual([new Error('no such scheme')]);
    expect(exists(server, '/now')).toBe(true);
  });
});
