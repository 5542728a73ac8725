import { CreateMode, ErrorCode, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { Session } from '../session/session.ts';
import { READ_ONLY_GATE } from './request-gate.ts';

const path = '/a';
const create: Request = { op: OpCode.create, path, data: null, acl: OPEN_ACL, flags: CreateMode.persistent, ttl: -1 };

function refusalOf(request: Request, isLocal: boolean): ErrorCode {
  const session = new Session(1n, 4000);
  session.isLocal = isLocal;
  return READ_ONLY_GATE.refusalOf(session, request, 0, 0);
}

describe('a server without a leader', () => {
  test.each([
    create,
    { op: OpCode.delete, path, version: -1 },
    { op: OpCode.setData, path, data: null, version: -1 },
    { op: OpCode.multi, ops: [create] },
    { op: OpCode.sync, path },
  ] as readonly Request[])('refuses what asks for more than its own word: op $op', (request) => {
    for (const isLocal of [false, true]) expect(refusalOf(request, isLocal)).toBe(ErrorCode.notReadOnly);
  });

  test.each([
    { op: OpCode.getData, path, watch: true },
    { op: OpCode.exists, path, watch: false },
    { op: OpCode.getChildren2, path, watch: false },
  ] as readonly Request[])('answers reads: op $op', (request) => {
    expect(refusalOf(request, false)).toBe(ErrorCode.ok);
  });

  test('ends its own sessions, and none of the ensemble', () => {
    expect(refusalOf({ op: OpCode.closeSession }, true)).toBe(ErrorCode.ok);
    expect(refusalOf({ op: OpCode.closeSession }, false)).toBe(ErrorCode.notReadOnly);
  });
});
