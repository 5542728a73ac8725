import { ConnectionLossError } from '@meerkat/client';
import { CreateMode, ErrorCode, isClientOp, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { CLOSE, check, children, create, exists, get, multi, remove, SYNC, set } from './requests.ts';
import { play, type Stage } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';
import { WireClient } from './wire-client.ts';

/** A leader, a follower and an observer. */
async function kindsOf(stage: Stage): Promise<readonly VirtualServer[]> {
  const leader = await stage.start();
  const follower = stage.ensemble.participants.find((server) => server !== leader)!;
  return [leader, follower, stage.ensemble.observers[0]!];
}

/** Every request of a client, and the error in its reply's header; that of a multi is in its parts. */
function everyRequest(root: string): readonly (readonly [Request, ErrorCode])[] {
  const { ok, nodeExists, noNode, badVersion, invalidACL, reconfigDisabled } = ErrorCode;
  const at = (name: string): string => `${root}/${name}`;
  const { op: _op, ...plain } = create(at('x'));
  return [
    [create(root), ok],
    [{ ...plain, op: OpCode.create, path: at('a') }, ok],
    [{ ...plain, op: OpCode.create2, path: at('b'), flags: CreateMode.ephemeralSequential }, ok],
    [{ ...plain, op: OpCode.createContainer, path: at('c'), flags: CreateMode.container }, ok],
    [{ ...plain, op: OpCode.createTTL, path: at('d'), flags: CreateMode.persistentWithTtl, ttl: 60_000 }, ok],
    [create(at('a')), nodeExists],
    [create(at('no/parent')), noNode],
    [set(at('a'), 'data'), ok],
    [set(at('a'), 'data', 7), badVersion],
    [{ op: OpCode.setACL, path: at('a'), acl: OPEN_ACL, version: -1 }, ok],
    [{ op: OpCode.setACL, path: at('a'), acl: [], version: -1 }, invalidACL],
    [multi(check(at('a'), 1), create(at('e')), set(at('e'), 'more'), remove(at('e'))), ok],
    [multi(create(at('f')), check(at('a'), 9)), ok],
    [multi(), ok],
    [remove(at('a'), 5), badVersion],
    [remove(at('a')), ok],
    [remove(at('a')), noNode],
    [
      { op: OpCode.reconfig, joiningServers: '', leavingServers: '1', newMembers: '', currentConfigId: -1 },
      reconfigDisabled,
    ],
    [SYNC, ok],
    [get(root), ok],
    [get(at('a')), noNode],
    [exists(at('a'), true), noNode],
    [children(root), ok],
    [{ op: OpCode.getChildren, path: root, watch: false }, ok],
    [{ op: OpCode.getACL, path: root }, ok],
    [{ op: OpCode.getAllChildrenNumber, path: root }, ok],
    [{ op: OpCode.getEphemerals, prefix: root }, ok],
    [{ op: OpCode.multiRead, ops: [{ op: OpCode.getData, path: root }] }, ok],
    [{ op: OpCode.addWatch, path: root, mode: 1 }, ok],
    [{ op: OpCode.checkWatches, path: root, watcherType: 3 }, ok],
    [{ op: OpCode.removeWatches, path: root, watcherType: 3 }, ok],
    [{ op: OpCode.whoAmI }, ok],
    [CLOSE, ok],
  ];
}

/** A connection sends these for itself, and a session sends its own setWatches. */
const OF_THE_CONNECTION = ['auth', 'ping', 'sasl', 'setWatches', 'setWatches2'];

describe('requests', () => {
  test('of every kind are among those below', () => {
    const sent = new Set<number>(everyRequest('/x').map(([{ op }]) => op));
    const left = Object.entries(OpCode).flatMap(([name, op]) => (isClientOp(op) && !sent.has(op) ? [name] : []));
    expect(left.toSorted()).toEqual(OF_THE_CONNECTION);
  });

  test('1851, 1124: of every kind get the same answers from every kind of server', () =>
    play({ servers: 3, observers: 1, core: { extendedTypesEnabled: true } }, async (stage) => {
      const answers: string[][] = [];
      for (const [i, server] of (await kindsOf(stage)).entries()) {
        const client = new WireClient(stage.world, `app-${i}`, server, { timeoutMs: 60_000 });
        await client.whenAnswered();
        const requests = everyRequest(`/of-${i}`);
        for (const [at, [request]] of requests.entries()) client.send(at + 1, request);
        await client.reply(requests.length);
        await client.whenClosed();
        expect(client.replies.map(({ xid }) => xid)).toEqual(requests.map((_, xid) => xid + 1));
        expect(client.replies.map(({ error }) => error)).toEqual(requests.map(([, error]) => error));
        answers.push(client.replies.map(({ xid, error, body }) => `${xid} ${error} ${body.length}`));
      }
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
      await expectSameTrees(stage);
    }));

  test('1851: with unknown operations are refused by every kind of server, which closes the connection', () =>
    play({ servers: 3, observers: 1, seeds: [1] }, async (stage) => {
      const numbers = [10, 13, 20, 23, 99, 108, 200, 300, -1, -2, -10, 2 ** 31 - 1, -(2 ** 31)];
      const unknown = numbers.filter((op) => !isClientOp(op));
      for (const server of await kindsOf(stage)) {
        for (const op of unknown) {
          const client = new WireClient(stage.world, 'app', server);
          await client.whenAnswered();
          client.send(1, create(`/${server.host}${op}`));
          client.sendRaw(2, op, (writer) => writer.ustring('/'));
          client.send(3, get('/'));
          await client.whenClosed();
          const errors = client.replies.map(({ xid, error }) => [xid, error]);
          expect(errors, `op ${op}`).toEqual([
            [1, ErrorCode.ok],
            [2, ErrorCode.unimplemented],
          ]);
        }
      }
    }));

  test('that are longer than servers accept fail after some connections, and the next ones are answered', () =>
    play({ servers: 3, core: { frameBytesMax: 1500 } }, async (stage) => {
      await stage.start();
      const client = await stage.connect('app');
      const answer = client.get(`/${'x'.repeat(2000)}`).then(
        () => null,
        (error: unknown) => error,
      );
      expect(await Promise.race([answer, stage.sleep(10_000)])).toBeInstanceOf(ConnectionLossError);
      await client.create('/next');
      await client.close();
    }));

  test('2623, 3472: of type 13 outside a multi reach no log, and neither delay nor overtake a write behind them', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      for (const [i, server] of (await kindsOf(stage)).entries()) {
        const client = new WireClient(stage.world, `app-${i}`, server, { timeoutMs: 60_000 });
        await client.whenAnswered();
        client.send(1, create(`/x${i}`));
        client.send(2, set(`/x${i}`, 'one'));
        client.sendRaw(3, OpCode.check, (writer) => {
          writer.ustring(`/x${i}`);
          writer.int(1);
        });
        for (let xid = 4; xid < 9; xid++) client.send(xid, set(`/x${i}`, `behind ${xid}`));
        await client.whenClosed();
        expect(client.replies.map(({ xid, error }) => [xid, error])).toEqual([
          [1, ErrorCode.ok],
          [2, ErrorCode.ok],
          [3, ErrorCode.unimplemented],
        ]);
        // Its session lives on, and a new connection of it starts with a clean state.
        const next = new WireClient(stage.world, `app-${i}`, server, { session: client.session });
        await next.whenAnswered();
        expect(next.hasSession).toBe(true);
        expect((await next.ask(1, set(`/x${i}`, 'two'))).error).toBe(ErrorCode.ok);
      }
      await stage.whole();
      for (const server of stage.servers) {
        expect(stage.logOf(server).filter(({ txn }) => txn.type === (OpCode.check as number))).toEqual([]);
      }
      // All servers can read all logs.
      stage.kill(...stage.servers);
      await stage.start();
      await expectSameTrees(stage);
    }));
});
