import { type Client, connect } from '@meerkat/client';
import { Barrier, DoubleBarrier, type Layout } from '@meerkat/recipes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith, type Peer } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ForeignProgram } from './harness.ts';

const LIBRARIES: readonly { readonly layout: Layout; readonly start: (port: number) => Promise<ForeignProgram> }[] = [
  { layout: 'kazoo', start: (port) => ForeignProgram.python('queues', port) },
  { layout: 'curator', start: (port) => ForeignProgram.java('Queues', port) },
];

for (const kind of SERVER_KINDS) {
  for (const { layout, start } of LIBRARIES) {
    const peers: Peer[] = kind === 'apache' ? [layout, 'apache'] : [layout];
    describeWith(peers, `barriers shared with ${layout} (${kind})`, () => {
      let server: ServerProcess;
      let client: Client;
      let foreign: ForeignProgram;

      beforeAll(async () => {
        server = await ServerProcess.start(kind);
        client = await connect(`127.0.0.1:${server.port}`);
        foreign = await start(server.port);
      });
      afterAll(async () => {
        await foreign?.kill();
        await client?.close();
        await server?.dispose();
      });

      test('a barrier of one stops and lets go the other', async () => {
        const barrier = new Barrier(client, '/shared/barrier');
        await foreign.ask('set', '/shared/barrier');
        expect(await barrier.isSet()).toBe(true);
        const waiting = barrier.wait();
        await foreign.ask('remove', '/shared/barrier');
        await waiting;
        await barrier.set();
        const theirs = foreign.ask('wait', '/shared/barrier');
        await barrier.remove();
        expect((await theirs).toLowerCase()).toBe('true');
      });

      test('a double barrier is entered and left together', async () => {
        for (let round = 0; round < 3; round++) {
          const path = `/shared/double-${round}`;
          const make = (): DoubleBarrier => new DoubleBarrier(client, path, 3, { layout });
          let hasEntered = false;
          const entering = foreign.ask('enter', path, 3).then(() => {
            hasEntered = true;
          });
          const first = make().enter();
          // Until both znodes are there; the third is missing.
          while (((await client.exists(path))?.numChildren ?? 0) < 2) await client.sync(path);
          expect(hasEntered).toBe(false);
          const inside = await Promise.all([first, make().enter()]);
          await entering;
          let hasLeft = false;
          const leaving = foreign.ask('leave', path).then(() => {
            hasLeft = true;
          });
          const ours = inside[0]!.leave();
          while (membersOf(await client.children(path)).length > 2) await client.sync(path);
          expect(hasLeft).toBe(false);
          await Promise.all([leaving, ours, inside[1]!.leave()]);
          expect(membersOf(await client.children(path))).toEqual([]);
        }
      });

      test('who dies inside is not waited for', async () => {
        const path = '/shared/death';
        await using doomed = await start(server.port);
        const entering = doomed.ask('enter', path, 2);
        const inside = await new DoubleBarrier(client, path, 2, { layout }).enter();
        await entering;
        const leaving = inside.leave();
        await doomed.end();
        await leaving;
        expect(membersOf(await client.children(path))).toEqual([]);
      });
    });
  }
}

function membersOf({ children }: { readonly children: readonly string[] }): string[] {
  return children.filter((name) => name !== 'ready');
}
