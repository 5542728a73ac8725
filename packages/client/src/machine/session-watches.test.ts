import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ADD_PERSISTENT, ADD_RECURSIVE, dataReply, GET_A } from './testing/exchanges.ts';
import { Bytes, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

describe('watches', () => {
  test('a one-shot watch is reported once, before the reply that follows the event', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.receive(dataReply(1, 8));
    world.notify(3, '/a', 9);
    world.notify(3, '/a', 10);
    expect(watcher.received).toEqual(['changed /a 9']);
  });

  test('exists sets a watch for the creation of a missing znode', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ op: OpCode.exists, path: '/a', watch: true }, watcher);
    world.reply(1, 8, -101);
    world.notify(1, '/a');
    expect(watcher.received).toEqual(['created /a']);
  });

  test('a get of a missing znode sets no watch', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit({ ...GET_A, watch: true }, watcher);
    world.reply(1, 8, -101);
    world.notify(1, '/a');
    expect(watcher.received).toEqual([]);
    expect(world.session.watches.size).toBe(0);
  });

  test('a recursive watch reports descendants, and no others', () => {
    const world = new ScriptedWorld();
    world.connect();
    const watcher = new Watcher();
    world.submit(ADD_RECURSIVE, watcher);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.notify(1, '/a/b/c', 9);
    world.notify(1, '/ab', 9);
    world.notify(2, '/a', 10);
    expect(watcher.received).toEqual(['created /a/b/c 9', 'deleted /a 10']);
  });

  test('on a server with one mode per path, one-shot watches are served by the existing recursive watch', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    const data = new Watcher();
    const child = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.submit({ ...GET_A, watch: true }, data);
    world.submit({ op: OpCode.getChildren2, path: '/a', watch: true }, child);
    // addWatch; the probe for separate modes; get and getChildren without their watch flag
    const frames = world.takeFrames();
    expect(frames.map(({ op }) => op)).toEqual([106, 17, 4, 12]);
    expect(frames.slice(2).map(({ body }) => body.at(-1))).toEqual([0, 0]);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -5);
    world.reply(3, 8, 0, new Bytes().text('').stat(8));
    world.reply(4, 8, 0, new Bytes().int(0).stat(8));
    world.notify(1, '/a/b');
    world.notify(3, '/a');
    expect(child.received).toEqual(['children /a']);
    expect(data.received).toEqual(['changed /a']);
    expect(recursive.received).toEqual(['created /a/b', 'changed /a']);
  });

  test('a server with separate modes is asked for each watch, and a change is still reported once', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    const persistent = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.submit(ADD_PERSISTENT, persistent);
    world.takeFrames();
    world.reply(3, 8, 0, new Bytes().int(0));
    world.notify(1, '/a/b', 9);
    world.notify(4, '/a', 9);
    expect(persistent.received).toEqual(['children /a 9']);
    expect(recursive.received).toEqual(['created /a/b 9']);
  });

  test('a plain persistent watch never replaces a recursive one on an old server', () => {
    const world = new ScriptedWorld();
    world.connect();
    world.submit(ADD_RECURSIVE, new Watcher());
    world.submit(ADD_PERSISTENT, new Watcher());
    const modes = world
      .takeFrames()
      .filter(({ op }) => op === OpCode.addWatch)
      .map(({ body }) => body.at(-1));
    expect(modes).toEqual([1, 1]);
  });

  test('removing the last listener removes the watch from the server', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [one, two] = [new Watcher(), new Watcher()];
    world.submit(ADD_RECURSIVE, one);
    world.submit(ADD_RECURSIVE, two);
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    world.reply(3, 8, 0, new Bytes().int(0));
    world.takeFrames();
    const done: string[] = [];
    world.session.calls.removeWatch('recursive', '/a', one, () => done.push('one'));
    expect([world.takeFrames(), done]).toEqual([[], ['one']]);
    world.session.calls.removeWatch('recursive', '/a', two, () => done.push('two'));
    const [frame] = world.takeFrames();
    expect([frame?.op, frame?.body]).toEqual([18, new Uint8Array(new Bytes().text('/a').int(5).list)]);
    expect(done).toEqual(['one']);
    world.reply(4, 8, 0);
    expect(done).toEqual(['one', 'two']);
    expect(world.session.watches.size).toBe(0);
  });

  test('the removal of a watch is done, whatever the server answers, and without a connection', () => {
    for (const end of [
      (world: ScriptedWorld) => world.reply(3, 9, -121),
      (world: ScriptedWorld) => world.close(),
      (world: ScriptedWorld) => world.session.end('closed', 'over'),
    ]) {
      const world = new ScriptedWorld();
      world.connect();
      const watcher = new Watcher();
      world.submit(ADD_RECURSIVE, watcher);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, -5);
      let doneCount = 0;
      const onDone = (): void => {
        doneCount++;
      };
      world.session.calls.removeWatch('recursive', '/a', watcher, onDone);
      expect(doneCount).toBe(0);
      end(world);
      expect(doneCount).toBe(1);
    }
    const apart = new ScriptedWorld();
    const watcher = new Watcher();
    apart.session.watches.add('persistent', '/a', watcher);
    let isDone = false;
    apart.session.calls.removeWatch('persistent', '/a', watcher, () => {
      isDone = true;
    });
    expect([isDone, apart.session.watches.size]).toEqual([true, 0]);
  });

  test('on an old server the whole entry is removed, and the other watches are rearmed', () => {
    const world = new ScriptedWorld();
    world.connect();
    const recursive = new Watcher();
    world.submit(ADD_RECURSIVE, recursive);
    world.submit({ ...GET_A, watch: true }, new Watcher());
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -5);
    world.receive(dataReply(3, 8));
    world.takeFrames();
    world.session.calls.removeWatch('recursive', '/a', recursive, () => {});
    const frames = world.takeFrames();
    expect(frames.map(({ xid, op }) => [xid, op])).toEqual([
      [4, 18],
      [-8, 101],
    ]);
    expect(frames[0]?.body.at(-1)).toBe(3);
  });

  test('a watch whose request was cancelled is removed from the server when it turns out to exist', () => {
    const world = new ScriptedWorld();
    world.connect();
    const added = world.submit(ADD_RECURSIVE, new Watcher());
    world.session.calls.cancel(added.call, 'aborted', 'not wanted');
    world.takeFrames();
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, 0);
    expect(world.takeFrames().map(({ op }) => op)).toEqual([18]);
    expect(world.session.watches.size).toBe(0);
  });

  test('a one-shot watch covered by a persistent one is armed itself when that one is removed before the reply', () => {
    for (const modes of ['one', 'apart'] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, data] = [new Watcher(), new Watcher()];
      world.submit(ADD_PERSISTENT, persistent);
      world.submit({ ...GET_A, watch: true }, data);
      expect(world.takeFrames().at(-1)?.body.at(-1)).toBe(0);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, modes === 'one' ? -5 : -121);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      expect(world.takeFrames().map(({ op }) => op)).toEqual([18]);
      world.receive(dataReply(3, 9));
      // Changes from the reply on are reported: the zxid of the reply is the one to compare with.
      const [frame] = world.takeFrames();
      expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches]);
      expect(frame?.body).toEqual(new Uint8Array(new Bytes().long(9).int(1).text('/a').int(0).int(0).list));
      world.notify(3, '/a', 10);
      expect(data.received).toEqual(['changed /a 10']);
    }
  });

  test('a one-shot watch misses nothing between the removal of a persistent watch and the next one', () => {
    for (const [mode, lists] of [
      [0, new Bytes().int(1).text('/a').int(0)],
      [1, new Bytes().int(0).int(1).text('/a')],
    ] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, data] = [new Watcher(), new Watcher()];
      world.submit(ADD_PERSISTENT, persistent);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, -5);
      world.submit({ ...GET_A, watch: true }, data);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      world.submit({ op: OpCode.addWatch, path: '/a', mode }, new Watcher());
      expect(world.takeFrames().map(({ op }) => op)).toEqual([106, 17, OpCode.getData, 18, 106]);
      world.receive(dataReply(3, 9));
      // The later watch, which reports no earlier changes, is the one that the server keeps.
      const [frame] = world.takeFrames();
      expect([frame?.xid, frame?.op]).toEqual([-8, OpCode.setWatches2]);
      const expected = new Bytes().long(9).int(1).text('/a').int(0).int(0);
      expect(frame?.body).toEqual(new Uint8Array([...expected.list, ...lists.list]));
    }
  });

  test('a one-shot watch set while a persistent one, requested as recursive, is removed stays', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [persistent, data] = [new Watcher(), new Watcher()];
    const recursive = world.submit(ADD_RECURSIVE, new Watcher());
    world.submit(ADD_PERSISTENT, persistent);
    world.session.calls.cancel(recursive.call, 'aborted', 'not wanted');
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -121);
    world.reply(3, 8, 0, new Bytes().int(0));
    world.submit({ ...GET_A, watch: true }, data);
    world.takeFrames();
    world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
    // By kind: removing all watches of the path would remove that of the read, too.
    const frames = world.takeFrames();
    expect(frames.map(({ op, body }) => [op, body.at(-1)])).toEqual([
      [18, 5],
      [18, 4],
    ]);
  });

  test('a persistent watch that was covered by a recursive one reports children until it is set itself', () => {
    for (const modes of ['one', 'apart', 'rearmed'] as const) {
      const world = new ScriptedWorld();
      world.connect();
      const [persistent, recursive] = [new Watcher(), new Watcher()];
      world.submit(ADD_RECURSIVE, recursive);
      world.submit(ADD_PERSISTENT, persistent);
      world.reply(1, 8, 0, new Bytes().int(0));
      world.reply(2, 8, modes === 'apart' ? -121 : -5);
      world.reply(3, 8, 0, new Bytes().int(0));
      if (modes === 'rearmed') {
        world.close();
        world.advance(200);
        world.open();
        world.acceptSession();
        world.reply(-8, 8, 0);
        world.reply(1, 8, -5);
      }
      persistent.received.length = 0;
      world.takeFrames();
      world.session.calls.removeWatch('recursive', '/a', recursive, () => {});
      const removal = world.takeFrames().find(({ op }) => op === 18);
      // It was in flight when the recursive watch was removed.
      world.notify(1, '/a/b', 9);
      expect(persistent.received).toEqual(['children /a 9']);
      world.reply(removal?.xid ?? 0, 9, 0);
      // From here on the server reports them itself; others may still be notified of the subtree.
      world.notify(1, '/a/c', 10);
      expect(persistent.received).toEqual(['children /a 9']);
      world.session.calls.removeWatch('persistent', '/a', persistent, () => {});
      expect(world.session.watches.size).toBe(0);
    }
  });

  test.each([
    ['persistent', 'apart', ADD_PERSISTENT],
    ['persistent', 'one', ADD_PERSISTENT],
    ['recursive', 'apart', ADD_RECURSIVE],
    ['recursive', 'one', ADD_RECURSIVE],
  ] as const)(
    'a %s watch stays at the server when one that is being added needs it (modes: %s)',
    (kind, modes, request) => {
      const world = new ScriptedWorld();
      world.connect();
      const [first, second] = [new Watcher(), new Watcher()];
      world.submit(request, first);
      for (const { op, xid } of world.takeFrames()) {
        if (op === OpCode.addWatch) world.reply(xid, 8, 0, new Bytes().int(0));
        else world.reply(xid, 8, modes === 'apart' ? -121 : -5);
      }
      world.submit(request, second);
      world.session.calls.removeWatch(kind, '/a', first, () => {});
      const sent = world.takeFrames();
      expect(sent.map(({ op }) => op)).toEqual([OpCode.addWatch]);
      world.reply(sent[0]!.xid, 8, 0, new Bytes().int(0));
      world.notify(3, '/a', 9);
      expect([first.received, second.received]).toEqual([[], ['changed /a 9']]);
      world.session.calls.removeWatch(kind, '/a', second, () => {});
      expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.removeWatches]);
    },
  );

  test('beside a rearmed recursive watch, a one-shot watch is armed itself on servers with separate modes', () => {
    const exists = { op: OpCode.exists, path: '/a', watch: true } as const;
    const world = new ScriptedWorld();
    world.connect();
    world.submit(ADD_RECURSIVE, new Watcher());
    world.reply(1, 8, 0, new Bytes().int(0));
    world.reply(2, 8, -121);
    world.close();
    world.advance(200);
    world.open();
    world.acceptSession();
    // Whether this server does so is not known yet.
    world.submit(exists, new Watcher());
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([
      [OpCode.setWatches2, 0x61],
      [OpCode.checkWatches, 5],
      [OpCode.exists, 0],
    ]);
    world.reply(-8, 8, 0);
    world.reply(1, 8, -121);
    world.reply(2, 8, -101);
    // The recursive watch would not report a child that this client may not read.
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches2]);
    world.submit(exists, new Watcher());
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([[OpCode.exists, 1]]);
  });

  test('a one-shot watch does not rely on a persistent one that the server refuses', () => {
    const world = new ScriptedWorld();
    world.connect();
    const [data, later] = [new Watcher(), new Watcher()];
    const added = world.submit(ADD_PERSISTENT, new Watcher());
    world.submit({ ...GET_A, watch: true }, data);
    world.takeFrames();
    world.reply(1, 8, -127);
    expect(added.failure).toMatchObject({ code: -127 });
    world.reply(2, 8, -5);
    world.takeFrames();
    world.receive(dataReply(3, 8));
    expect(world.takeFrames().map(({ op }) => op)).toEqual([OpCode.setWatches]);
    // Nor is it left to one that does not exist afterwards.
    world.submit({ ...GET_A, watch: true }, later);
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([[OpCode.getData, 1]]);
  });

  test.each([
    ['persistent', ADD_PERSISTENT],
    ['recursive', ADD_RECURSIVE],
  ] as const)('a one-shot watch does not rely on a %s one whose request is too large', (_, request) => {
    // The request that adds a watch is a little longer than one that reads.
    const world = new ScriptedWorld({ requestBytesMax: 1000 });
    world.connect();
    const path = `/${'a'.repeat(985)}`;
    const data = new Watcher();
    const added = world.submit({ ...request, path }, new Watcher());
    expect(added.failure).toMatchObject({ kind: 'request-too-large' });
    expect(world.session.watches.size).toBe(0);
    world.submit({ ...GET_A, path, watch: true }, data);
    expect(world.takeFrames().map(({ op, body }) => [op, body.at(-1)])).toEqual([[OpCode.getData, 1]]);
  });
});
