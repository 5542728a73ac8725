import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ADD_RECURSIVE, dataReply, GET_A } from './testing/exchanges.ts';
import { Bytes, replyBytes, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

describe('watches', () => {
  test('all watches are rearmed on a new connection, and notified', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    const [frame] = world.takeFrames();
    expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches2]);
    expect(frame?.body).toEqual(new Uint8Array(new Bytes().long(8).int(0).int(0).int(0).int(0).int(1).text('/a').list));
    expect(watcher.received).toEqual(['suspended']);
    world.reply(-8, 9, 0);
    expect(watcher.received).toEqual(['suspended', 'rearmed']);
  });

  test('a hundred thousand watches are rearmed in requests that servers accept', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    for (let i = 0; i < 100_000; i++) world.session.watches.add('data', `/some/longer/path/${i}`, new Watcher());
    const requests = world.session.watches.rearmRequests(1);
    expect(requests.length).toBeGreaterThan(10);
    expect(requests.flatMap(({ dataWatches }) => [...dataWatches]).length).toBe(100_000);
    for (const { dataWatches } of requests) expect([...dataWatches].join('').length).toBeLessThan(200_000);
  });

  test('a connection on which the server does not rearm the watches is replaced', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.receive(dataReply(1, 8));
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    const read = world.submit(GET_A);
    world.receive(new Uint8Array([...replyBytes(-8, 9, -127), ...dataReply(1, 9)]));
    expect(watcher.received).toEqual(['suspended', 'suspended']);
    expect(world.states.at(-1)).toMatchObject({
      state: 'suspended',
      reason: 'one:2181 (10.0.0.1) refused to arm the watches (code -127)',
    });
    // No newer data is seen before the event.
    expect(read.isSettled).toBe(false);
    world.advance(200);
    world.open();
    world.acceptSession();
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches, OpCode.getData]);
    world.reply(-8, 9, 0);
    expect(watcher.received).toEqual(['suspended', 'suspended', 'rearmed']);
  });

  test('watches that take several requests are armed with the last reply, and get the events in between', () => {
    const world = new ScriptedWorld({ requestBytesMax: 0xfffff });
    world.connect();
    const paths = ['/a', '/b', '/c'].map((path) => path.padEnd(70_000, 'x'));
    const watchers = paths.map(() => new Watcher());
    paths.forEach((path, i) => {
      world.submit({ ...GET_A, path, watch: true }, watchers[i]);
      world.receive(dataReply(i + 1, 8));
    });
    const lasting = new Watcher();
    world.submit({ op: OpCode.addWatch, path: paths[1]!, mode: 0 }, lasting);
    world.reply(4, 8, 0, new Bytes().int(0));
    world.reply(5, 8, -121);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    world.submit(GET_A);
    expect(world.takeFrames().map(({ xid, op }) => [xid, op])).toEqual([
      [-8, OpCode.setWatches2],
      [-8, OpCode.setWatches],
      [1, OpCode.checkWatches],
      [2, OpCode.getData],
    ]);
    world.notify(2, paths[0]!);
    world.reply(-8, 9, 0);
    // Both watches of the first request are armed; the second has not been read yet, and is compared when it is.
    world.notify(3, paths[1]!, 10);
    world.notify(3, paths[2]!);
    expect(lasting.received).toEqual(['suspended', `changed ${paths[1]} 10`]);
    world.reply(-8, 10, 0);
    expect(lasting.received.at(-1)).toBe('rearmed');
    expect(watchers.map(({ received }) => received.map((what) => what.slice(0, 10)))).toEqual([
      ['suspended', 'deleted /a'],
      ['suspended', 'changed /b'],
      ['suspended', 'changed /c'],
    ]);
    expect(world.session.watches.size).toBe(1);
  });

  test('servers that all refuse to arm the watches are retried with growing delays, until one arms them', () => {
    const hosts = [
      { host: 'one', port: 2181 },
      { host: 'two', port: 2181 },
    ];
    const world = new ScriptedWorld({ hosts });
    world.connect();
    world.submit({ ...GET_A, watch: true }, new Watcher());
    world.receive(dataReply(1, 8));
    const pauses = (count: number): number[] =>
      Array.from({ length: count }, () => {
        world.reply(-8, 9, -127);
        const startedMs = world.nowMs;
        world.run();
        while (!world.isOpen) world.advance(10);
        world.open();
        world.acceptSession();
        return world.nowMs - startedMs;
      });
    world.close();
    world.open();
    world.acceptSession();
    // At least half of each delay, the rest is random: 200, 400, 800 and then 1000 ms after every second server.
    expect(pauses(9)).toEqual([0, 100, 0, 200, 0, 400, 0, 500, 0]);
    world.reply(-8, 9, 0);
    world.close();
    world.open();
    world.acceptSession();
    expect(pauses(2)).toEqual([0, 100]);
  });

  test('rearmed watches are notified of a new session although its first connection broke before', () => {
    const world = new ScriptedWorld();
    world.connect(0x77);
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.close();
    world.advance(200);
    world.open();
    world.refuseSession();
    world.open();
    world.acceptSession(0x88);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x88);
    expect(world.states.at(-1)).toMatchObject({ state: 'connected', sameSession: true });
    world.reply(-8, 9, 0);
    expect(watcher.received.at(-1)).toBe('rearmed on a new session');
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession(0x88);
    world.reply(-8, 9, 0);
    expect(watcher.received.at(-1)).toBe('rearmed');
  });
});
