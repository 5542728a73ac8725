import { CreateMode, ErrorCode, OpCode, Perm, type Request } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { ask, create, errorsOf, getData } from './testing/core-requests.ts';
import { PLAIN_AUTHENTICATOR } from './testing/plain-authenticator.ts';
import { TestServer } from './testing/test-server.ts';

describe('a server that restarts with its data', () => {
  it('has every acknowledged write, and sessions can be resumed with their ephemerals', () => {
    const first = new TestServer();
    const client = first.connect();
    expect(ask(first, client, create('/a'))).toBe(ErrorCode.ok);
    expect(ask(first, client, create('/e', CreateMode.ephemeral))).toBe(ErrorCode.ok);
    first.disk.crash();
    const second = new TestServer({}, first.disk, first.clock);
    const back = second.open();
    back.connect({ session: client.session! });
    second.run();
    expect(back.takeArrivals()[0]).toMatchObject({ kind: 'session', response: { sessionId: client.session!.id } });
    expect(ask(second, back, getData('/a'))).toBe(ErrorCode.ok);
    expect(ask(second, back, getData('/e'))).toBe(ErrorCode.ok);
    expect(ask(second, back, { op: OpCode.closeSession })).toBe(ErrorCode.ok);
    expect(ask(second, second.connect(), getData('/e'))).toBe(ErrorCode.noNode);
  });

  it('restarts the full timeout of every session, and then expires it', () => {
    const first = new TestServer();
    ask(first, first.connect(3000), create('/e', CreateMode.ephemeral));
    first.stop();
    expect(first.isStopped).toBe(true);
    first.clock.nowMs += 60_000;
    const second = new TestServer({}, first.disk, first.clock);
    const other = second.connect(20_000);
    second.advance(2000);
    expect(ask(second, other, getData('/e'))).toBe(ErrorCode.ok);
    second.advance(3000);
    expect(ask(second, other, getData('/e'))).toBe(ErrorCode.noNode);
  });
});

describe('a disk that fails', () => {
  it('acknowledges nothing, closes the connections and fails the server with the error', () => {
    for (const code of ['ENOSPC', 'EIO']) {
      for (const op of ['write', 'sync'] as const) {
        const server = new TestServer();
        const client = server.connect();
        expect(ask(server, client, create('/a'))).toBe(ErrorCode.ok);
        server.disk.failNext({ operation: op, code });
        client.send(create('/b'));
        server.run();
        expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
        expect(server.failure?.message).toContain(code);
        const late = server.open();
        expect(late.isClosed).toBe(true);
      }
    }
  });
});

describe('a disk that stalls longer than a session timeout', () => {
  it('does not expire a session whose requests wait for it, but expires a silent one', () => {
    const server = new TestServer({ globalOutstandingLimit: 5 });
    const busy = server.connect(4000);
    const silent = server.connect(4000);
    const watcher = server.connect(20_000);
    ask(server, busy, create('/busy', CreateMode.ephemeral));
    ask(server, silent, create('/silent', CreateMode.ephemeral));
    server.isDiskHeld = true;
    for (let i = 0; i < 50; i++) busy.send(create(`/n${i}`));
    server.advance(15_000);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(busy.takeArrivals())).toEqual(Array.from({ length: 50 }, () => 0));
    expect(ask(server, watcher, getData('/busy'))).toBe(ErrorCode.ok);
    expect(ask(server, watcher, getData('/silent'))).toBe(ErrorCode.noNode);
  });

  it('expires the session of a client that does not read its replies', () => {
    const server = new TestServer();
    const deaf = server.connect(4000);
    ask(server, deaf, create('/big', CreateMode.persistent, { bytes: 500_000 }));
    ask(server, deaf, create('/e', CreateMode.ephemeral));
    deaf.isDeaf = true;
    for (let i = 0; i < 20; i++) deaf.send(getData('/big'));
    server.advance(8000);
    expect(deaf.isClosed).toBe(true);
    expect(ask(server, server.connect(), getData('/e'))).toBe(ErrorCode.noNode);
  });
});

describe('a session that is expired manually', () => {
  it('ends like one that timed out: ephemerals are deleted, watches fire, its connection closes', () => {
    const server = new TestServer();
    const client = server.connect();
    const other = server.connect();
    ask(server, client, create('/e', CreateMode.ephemeral));
    ask(server, other, getData('/e', true));
    const { id } = client.session!;
    expect(server.core.view.sessions()).toEqual([
      { id, timeoutMs: 10_000, remote: client.remote },
      { id: other.session!.id, timeoutMs: 10_000, remote: other.remote },
    ]);
    expect(server.core.expireSession(id)).toBe(true);
    expect(server.core.view.sessions()).toHaveLength(1);
    server.run();
    expect(client.isClosed).toBe(true);
    expect(other.takeArrivals()).toMatchObject([{ kind: 'event', event: { path: '/e' } }]);
    expect(server.trace.map(({ kind }) => kind)).toContain('session-expired');
    expect(server.core.expireSession(id)).toBe(false);
  });

  it('is not traced as expired when an operator ended it', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/e', CreateMode.ephemeral));
    const { id } = client.session!;
    expect(server.core.view.ephemeralCountOf(id)).toBe(1);
    expect(server.core.expireSession(id, 'operator')).toBe(true);
    server.run();
    expect(client.isClosed).toBe(true);
    expect(server.core.view.ephemeralCountOf(id)).toBe(0);
    const kinds = server.trace.map(({ kind }) => kind);
    expect(kinds).toContain('session-closed');
    expect(kinds).not.toContain('session-expired');
  });
});

describe('stopping', () => {
  it('answers what is in flight, closes the connections and loses nothing', () => {
    const server = new TestServer();
    const client = server.connect();
    client.send(create('/a'));
    server.stop();
    expect(server.isStopped).toBe(true);
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: 0 } }, { kind: 'closed' }]);
    const again = new TestServer({}, server.disk, server.clock);
    expect(ask(again, again.connect(), getData('/a'))).toBe(ErrorCode.ok);
  });
});

describe('stopping while the disk is slow', () => {
  it('answers the write in flight, but not what the client sends afterwards', () => {
    const server = new TestServer();
    const client = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    server.run();
    server.stop();
    client.send(create('/b'));
    server.run();
    expect(client.isClosed).toBe(false);
    server.isDiskHeld = false;
    server.run();
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { xid: 1, error: 0 } }, { kind: 'closed' }]);
    const again = new TestServer({}, server.disk, server.clock);
    expect(ask(again, again.connect(), getData('/a'))).toBe(ErrorCode.ok);
    expect(ask(again, again.connect(), getData('/b'))).toBe(ErrorCode.noNode);
  });
});

describe('a connection beyond the limit of descriptors', () => {
  it('replaces the connection without a session that has been idle longest', () => {
    const server = new TestServer();
    const client = server.connect();
    const silent = [server.open(), server.open()];
    const asking = server.open('10.0.0.9', true);
    asking.connect({ timeoutMs: 10_000 });
    server.run();
    expect(silent.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    expect(asking.session).not.toBeNull();
    expect(ask(server, client, getData('/'))).toBe(ErrorCode.ok);
    expect(server.open('10.0.0.9', true).isClosed).toBe(false);
    expect(silent.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it('replaces one from the address with the most connections', () => {
    const server = new TestServer();
    const quiet = server.open('10.0.0.1');
    const crowd = [2, 3].flatMap((host) => Array.from({ length: 3 }, () => server.open(`10.0.0.${host}`)));
    for (let i = 0; i < 50; i++) crowd.push(server.open(`10.0.0.${2 + (i % 2)}`, true));
    expect(quiet.isClosed).toBe(false);
    expect(crowd.filter(({ isClosed }) => !isClosed)).toHaveLength(6);
    quiet.connect({ timeoutMs: 10_000 });
    server.run();
    expect(quiet.session).not.toBeNull();
  });

  it('is refused when all others have asked for a session', () => {
    const server = new TestServer();
    const client = server.connect();
    const refused = server.open('10.0.0.9', true);
    server.run();
    expect([refused.isClosed, client.isClosed]).toEqual([true, false]);
    expect(server.core.stats.connectionsRefused).toBe(1);
    expect(server.trace.at(-1)).toMatchObject({
      kind: 'connection-refused',
      reason: expect.stringMatching(
        /as many connections of clients as the descriptors of this process allow, and none/,
      ),
    });
  });

  it('does not replace one whose session is being created', () => {
    const server = new TestServer();
    server.isDiskHeld = true;
    const waiting = server.open();
    waiting.connect({ timeoutMs: 10_000 });
    server.run();
    expect(server.open('10.0.0.9', true).isClosed).toBe(true);
    server.isDiskHeld = false;
    server.run();
    expect(waiting.session).not.toBeNull();
  });
});

describe('ACLs of a scheme that a server cannot enforce', () => {
  it('prevent it from starting, unless skipAcl is set', () => {
    const first = new TestServer();
    const client = first.connect();
    const acl = [{ perms: Perm.all, scheme: 'digest', id: 'ann:secret' }];
    expect(ask(first, client, { ...create('/private'), acl } as Request)).toBe(ErrorCode.ok);
    first.stop();
    const asked: string[][] = [];
    const authenticator = {
      ...PLAIN_AUTHENTICATOR,
      refusalOf: (schemes: ReadonlySet<string>) => {
        asked.push([...schemes].sort());
        return schemes.has('digest') ? 'no digest here' : null;
      },
    };
    const refused = new TestServer({}, first.disk, first.clock, authenticator);
    expect(asked).toEqual([['digest', 'world']]);
    expect([refused.isServing, refused.failure?.message]).toEqual([false, 'no digest here']);
    first.disk.crash();
    expect(new TestServer({ skipAcl: true }, first.disk, first.clock, authenticator).isServing).toBe(true);
  });
});

describe('containers and TTL znodes', () => {
  it('are deleted when they are empty and expired', () => {
    const server = new TestServer({ extendedTypesEnabled: true, containerCheckIntervalMs: 1000 });
    const client = server.connect(20_000);
    ask(server, client, { ...create('/c', CreateMode.container), op: OpCode.createContainer } as Request);
    ask(server, client, create('/c/child'));
    ask(server, client, {
      ...create('/t', CreateMode.persistentWithTtl),
      op: OpCode.createTTL,
      ttl: 3000,
    } as Request);
    server.advance(2500);
    expect(ask(server, client, getData('/c'))).toBe(ErrorCode.ok);
    expect(ask(server, client, getData('/t'))).toBe(ErrorCode.ok);
    ask(server, client, { op: OpCode.delete, path: '/c/child', version: -1 });
    server.advance(3000);
    expect(ask(server, client, getData('/c'))).toBe(ErrorCode.noNode);
    expect(ask(server, client, getData('/t'))).toBe(ErrorCode.noNode);
  });
});

describe('a second connection for a session', () => {
  it('takes it over with the right password; a wrong one disconnects no client', () => {
    const server = new TestServer();
    const client = server.connect();
    const session = client.session!;
    const thief = server.open();
    thief.connect({ session: { id: session.id, password: new Uint8Array(16) } });
    server.run();
    expect(thief.takeArrivals()).toMatchObject([{ kind: 'session', response: { timeoutMs: 0 } }, { kind: 'closed' }]);
    expect(ask(server, client, create('/a'))).toBe(ErrorCode.ok);
    const again = server.open();
    again.connect({ session });
    server.run();
    expect(client.isClosed).toBe(true);
    again.takeArrivals();
    expect(ask(server, again, getData('/a'))).toBe(ErrorCode.ok);
  });

  it('is closed without an answer when it has seen a later zxid than this server', () => {
    const server = new TestServer();
    const client = server.open();
    client.connect({ lastZxidSeen: 1000 });
    server.run();
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
  });
});
