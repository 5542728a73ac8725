import { OpCode, type Request } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Bytes, PASSWORD, replyBytes, ScriptedWorld, Watcher } from './testing/scripted-server.ts';

const SET: Request = { op: OpCode.setData, path: '/a', data: new Uint8Array([1]), version: -1 };
const NAMES = new Bytes().int(2).text('one').text('two');

/** Replies to a request with xid 1, byte by byte as sent by servers. */
const REPLIES: readonly (readonly [string, Request, Uint8Array])[] = [
  ['getData', { op: OpCode.getData, path: '/a', watch: true }, replyBytes(1, 7, 0, new Bytes().text('hi').stat(7))],
  ['setData', SET, replyBytes(1, 7, 0, new Bytes().stat(7))],
  ['an error', SET, replyBytes(1, 7, -101)],
  ['getChildren', { op: OpCode.getChildren2, path: '/a', watch: true }, childrenReply()],
  ['getACL', { op: OpCode.getACL, path: '/a' }, aclReply()],
  ['multi', { op: OpCode.multi, ops: [{ op: OpCode.check, path: '/a', version: 1 }] }, multiReply()],
  ['whoAmI', { op: OpCode.whoAmI }, replyBytes(1, 7, 0, new Bytes().int(1).text('ip').text('127.0.0.1'))],
  ['addWatch', { op: OpCode.addWatch, path: '/a', mode: 1 }, replyBytes(1, 7, 0, new Bytes().int(0))],
];

/** Bit patterns that are likely to do harm: a flipped sign, all bits, the smallest change. */
const MASKS = [0x80, 0xff, 0x01];

describe('damaged bytes', () => {
  test.each(REPLIES)('in a reply to %s end the request one way or the other', (_, request, reply) => {
    for (let offset = 0; offset < reply.length; offset++) {
      for (const mask of MASKS) {
        const damaged = reply.slice();
        damaged[offset]! ^= mask;
        expectSettled(request, [damaged]);
      }
    }
  });

  test('in an event have no effect on others', () => {
    const notification = replyBytes(-1, 9, 0, new Bytes().int(3).int(3).text('/a'));
    for (let offset = 0; offset < notification.length; offset++) {
      for (const mask of MASKS) {
        const damaged = notification.slice();
        damaged[offset]! ^= mask;
        expectSettled(SET, [damaged, replyBytes(1, 7, 0, new Bytes().stat(7))]);
      }
    }
  });

  test('in a handshake are a failed attempt, or another session; the next attempt follows', () => {
    const response = new Bytes().int(0).int(9000).long(0x77).buffer(PASSWORD).byte(0).frame();
    for (let offset = 0; offset < response.length; offset++) {
      for (const mask of MASKS) {
        const world = new ScriptedWorld();
        world.session.start();
        const call = world.submit(SET);
        world.open();
        const damaged = response.slice();
        damaged[offset]! ^= mask;
        world.receive(damaged);
        if (world.session.state === 'connecting') {
          world.advance(20_000);
          world.close();
          while (!world.isOpen) world.advance(100);
          world.open();
          world.acceptSession();
        }
        // A read-only server and another timeout are possible, if unlikely.
        expect(['connected', 'read-only']).toContain(world.session.state);
        world.session.end('closed', 'enough');
        expect(call.isSettled).toBe(true);
      }
    }
  });

  test('of any kind, in pieces of any size, end every request, and nothing is thrown', () => {
    const chunk = fc.uint8Array({ minLength: 1, maxLength: 60 });
    const piece = fc.oneof(
      chunk,
      fc.constantFrom(...REPLIES).map(([, , reply]) => reply),
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (chunks) => {
        expectSettled(SET, chunks);
        expectSettled({ op: OpCode.getData, path: '/a', watch: true }, chunks);
      }),
      { numRuns: 500 },
    );
  });
});

/** Sends the request, receives these bytes, and then nothing. */
function expectSettled(request: Request, chunks: readonly Uint8Array[]): void {
  const world = new ScriptedWorld();
  world.connect();
  const watcher = new Watcher();
  const call = world.submit(request, watcher);
  const behind = world.submit({ op: OpCode.exists, path: '/b', watch: false });
  world.run();
  for (const bytes of chunks) if (world.session.server !== null) world.receive(bytes);
  world.advance(30_000);
  expect(world.session.state).toBe('lost');
  expect([call.isSettled, behind.isSettled]).toEqual([true, true]);
  world.session.end('closed', 'enough');
  expect(world.session.watches.size).toBe(0);
}

function childrenReply(): Uint8Array {
  const body = new Bytes();
  body.list.push(...NAMES.list);
  return replyBytes(1, 7, 0, body.stat(7));
}

function aclReply(): Uint8Array {
  return replyBytes(1, 7, 0, new Bytes().int(1).int(31).text('world').text('anyone').stat(7));
}

function multiReply(): Uint8Array {
  return replyBytes(1, 7, 0, new Bytes().int(13).byte(0).int(0).int(-1).byte(1).int(-1));
}
