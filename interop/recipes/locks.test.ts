import { type Client, connect, nameOf, text } from '@meerkat/client';
import { Election, Mutex, ReadWriteLock, Semaphore } from '@meerkat/recipes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith, type Peer } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ForeignProgram } from './harness.ts';
import { namePattern } from './names.ts';

/** Number of increments by each client. */
const ROUNDS = 15;

/** The election recipes of each library. */
const STYLES = { curator: ['latch', 'selector'], kazoo: ['latch'] } as const;

for (const kind of SERVER_KINDS) {
  for (const layout of ['kazoo', 'curator'] as const) {
    const peers: Peer[] = kind === 'apache' ? [layout, 'apache'] : [layout];
    describeWith(peers, `locks shared with ${layout} (${kind})`, () => {
      let server: ServerProcess;
      let foreign: ForeignProgram;
      let client: Client;

      beforeAll(async () => {
        server = await ServerProcess.start(kind);
        foreign =
          layout === 'kazoo'
            ? await ForeignProgram.python('locks', server.port)
            : await ForeignProgram.java('Locks', server.port);
        client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 30_000, connectTimeoutMs: 60_000 });
      });
      afterAll(async () => {
        await client?.close();
        await foreign?.[Symbol.asyncDispose]();
        await server?.dispose();
      });

      /** Compares the name of the one child created by a foreign program with the table in the docs. */
      async function expectNamed(recipe: string, parent: string): Promise<void> {
        const { children } = await client.children(parent, { read: 'linearizable' });
        expect(children).toHaveLength(1);
        expect(children[0]).toMatch(namePattern(recipe, layout));
      }

      async function untilContenders(mutex: Mutex, count: number): Promise<void> {
        while ((await mutex.contenders()).length !== count) await new Promise((resolve) => setTimeout(resolve, 20));
      }

      test('a mutex passes from one to the other and back', async () => {
        const path = '/mutex';
        const mutex = new Mutex(client, path, { layout });
        await foreign.ask('acquire', 'a', 'mutex', path);
        await expectNamed('Mutex', path);
        expect(await mutex.tryAcquire()).toBeNull();
        const acquired = mutex.acquire();
        await untilContenders(mutex, 2);
        const [first] = await mutex.contenders();
        expect(first).toMatchObject({ isFirst: true });
        expect(first!.sessionId).not.toBe(client.session!.id);
        await foreign.ask('release', 'a');
        const lock = await acquired;
        await expectNamed('Mutex', path);
        expect(nameOf(lock.path)).toMatch(namePattern('Mutex', layout));

        let hasForeign = false;
        const next = foreign.ask('acquire', 'b', 'mutex', path).then(() => {
          hasForeign = true;
        });
        await untilContenders(mutex, 2);
        expect(hasForeign).toBe(false);
        await lock.release();
        await next;
        expect(await mutex.tryAcquire()).toBeNull();
        await foreign.ask('release', 'b');
      });

      test('a read/write lock excludes readers and writers of both', async () => {
        const path = '/read-write';
        const lock = new ReadWriteLock(client, path, { layout });
        await foreign.ask('acquire', 'r', 'read', path);
        await expectNamed('ReadWriteLock, reader', path);
        const reading = await lock.acquireRead();
        expect(nameOf(reading.path)).toMatch(namePattern('ReadWriteLock, reader', layout));
        const writing = lock.acquireWrite();
        while ((await lock.contenders()).length < 3) await new Promise((resolve) => setTimeout(resolve, 20));
        expect((await lock.contenders()).map(({ wants, isFirst }) => [wants, isFirst])).toEqual([
          ['read', true],
          ['read', true],
          ['write', false],
        ]);
        await reading.release();
        await foreign.ask('release', 'r');
        const writer = await writing;
        expect(nameOf(writer.path)).toMatch(namePattern('ReadWriteLock, writer', layout));

        const isWriting = foreign.ask('acquire', 'w', 'write', path);
        while ((await lock.contenders()).length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
        const reader = await lock.downgrade(writer);
        expect(nameOf(reader.path)).toMatch(namePattern('ReadWriteLock, reader', layout));
        expect((await lock.contenders()).map(({ isFirst }) => isFirst)).toEqual([true, false]);
        await reader.release();
        await isWriting;
        await expectNamed('ReadWriteLock, writer', path);
        expect(await lock.tryAcquireRead()).toBeNull();
        await foreign.ask('release', 'w');
      });

      test('a semaphore counts the leases of both', async () => {
        const path = '/semaphore';
        const parent = layout === 'curator' ? `${path}/leases` : path;
        const semaphore = new Semaphore(client, path, { layout, leasesMax: 2 });
        await foreign.ask('lease', 'a', path, 2);
        await expectNamed('Semaphore', parent);
        const lease = await semaphore.acquire();
        expect(nameOf(lease.path)).toMatch(namePattern('Semaphore', layout));
        expect(await semaphore.tryAcquire()).toBeNull();
        const next = semaphore.acquire();
        await foreign.ask('release', 'a');
        const second = await next;
        const foreignNext = foreign.ask('lease', 'b', path, 2);
        await lease.release();
        await foreignNext;
        expect(await semaphore.holders()).toHaveLength(2);
        await second.release();
        await foreign.ask('release', 'b');
      });

      test.each(STYLES[layout])('an election (%s) has candidates of both', async (style) => {
        const path = `/election-${style}`;
        const election = new Election(client, path, { layout, style, id: 'ours' });
        const recipe = style === 'latch' ? 'Election' : 'Election, selector';
        const campaign = (id: string): Promise<string> =>
          layout === 'kazoo'
            ? foreign.ask('lead', path, id)
            : foreign.ask(style === 'latch' ? 'latch' : 'select', path, id);
        const resign = async (id: string): Promise<unknown> =>
          layout === 'kazoo' ? client.create(`/stop-${id}`) : foreign.ask('release', id);

        void campaign('theirs');
        await foreign.waitForEvent('leading theirs');
        await expectNamed(recipe, path);
        expect(await election.leader()).toMatchObject({ id: 'theirs', isLeader: true });
        const elected = election.campaign();
        while ((await election.candidates()).length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
        await resign('theirs');
        const leadership = await elected;
        expect(nameOf(leadership.path)).toMatch(namePattern(recipe, layout));
        if (layout === 'curator') expect(await foreign.ask('leader', path)).toBe('ours');
        void campaign('others');
        while ((await election.candidates()).length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
        await leadership.release();
        await foreign.waitForEvent('leading others');
        await resign('others');
      });

      test.each(['mutex', 'write', 'lease'])('a counter under %s loses no increment of mixed clients', async (what) => {
        const path = `/fleet-${what}`;
        const counter = `/counter-${what}`;
        await client.create(counter, '0');
        const ours = [1, 2].map(async () => {
          await using own = await connect(`127.0.0.1:${server.port}`, { connectTimeoutMs: 60_000 });
          for (let i = 0; i < ROUNDS; i++) {
            await using held =
              what === 'mutex'
                ? await new Mutex(own, path, { layout }).acquire()
                : what === 'write'
                  ? await new ReadWriteLock(own, path, { layout }).acquireWrite()
                  : await new Semaphore(own, path, { layout, leasesMax: 1 }).acquire();
            const { data } = await own.get(counter, { codec: text });
            await held.guarded.set(counter, `${Number(data) + 1}`);
          }
        });
        const theirs = [1, 2].map(() => foreign.ask('count', what, path, counter, ROUNDS));
        await Promise.all([...ours, ...theirs]);
        const { data } = await client.get(counter, { codec: text });
        expect(Number(data)).toBe(4 * ROUNDS);
      });

      test.each(STYLES[layout])('a counter of leaders (%s) loses no increment of mixed clients', async (style) => {
        const path = `/electorate-${style}`;
        const counter = `/counter-${style}`;
        await client.create(counter, '0');
        const ours = ['one', 'two'].map(async (id) => {
          await using own = await connect(`127.0.0.1:${server.port}`, { connectTimeoutMs: 60_000 });
          const election = new Election(own, path, { layout, style, id });
          let last = 0n;
          for (let i = 0; i < ROUNDS; i++) {
            await using leadership = await election.campaign();
            expect(leadership.token).toBeGreaterThan(last);
            last = leadership.token;
            const { data } = await own.get(counter, { codec: text });
            await leadership.guarded.set(counter, `${Number(data) + 1}`);
          }
        });
        const verb = layout === 'kazoo' ? 'lead_count' : style === 'latch' ? 'latch_count' : 'select_count';
        const theirs = ['three', 'four'].map((id) => foreign.ask(verb, path, id, counter, ROUNDS));
        await Promise.all([...ours, ...theirs]);
        const { data } = await client.get(counter, { codec: text });
        expect(Number(data)).toBe(4 * ROUNDS);
      });

      if (layout === 'curator') {
        test('Curator is notified that its lock is revoked, and so are we', async () => {
          const path = '/revoked';
          const mutex = new Mutex(client, path);
          await foreign.ask('acquire', 'v', 'revocable', path);
          expect(await mutex.revoke()).toBe(true);
          await foreign.waitForEvent('revoked v');
          await foreign.ask('release', 'v');
          const lock = await mutex.acquire();
          const isAsked = new Promise((resolve) => lock.revocation.addEventListener('abort', resolve));
          await foreign.ask('revoke', lock.path);
          await isAsked;
          await lock.release();
        });
      } else {
        test('kazoo reads our identifier', async () => {
          const lock = await new Mutex(client, '/named', { layout, data: 'ours' }).acquire();
          expect(await foreign.ask('contenders', 'mutex', '/named')).toBe('ours');
          await lock.release();
        });
      }
    });
  }
}
