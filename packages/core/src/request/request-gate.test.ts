import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { Session } from '../session/session.ts';
import { create, exists, getData, remove, setData } from '../testing/core-requests.ts';
import { READ_ONLY_GATE } from './request-gate.ts';

const path = '/a';

function refusalOf(request: Request, isLocal: boolean): ErrorCode {
  const session = new Session(1n, 4000);
  session.isLocal = isLocal;
  return READ_ONLY_GATE.refusalOf(session, request, 0, 0);
}

describe('a server without a leader', () => {
  test.each([
    create(path),
    remove(path),
    setData(path),
    { op: OpCode.multi, ops: [create(path)] },
    { op: OpCode.sync, path },
  ] as readonly Request[])('refuses requests that need a quorum: op $op', (request) => {
    for (const isLocal of [false, true]) expect(refusalOf(request, isLocal)).toBe(ErrorCode.notReadOnly);
  });

  test.each([getData(path, true), exists(path), { op: OpCode.getChildren2, path, watch: false }] as readonly Request[])(
    'answers reads: op $op',
    (request) => {
      expect(refusalOf(request, false)).toBe(ErrorCode.ok);
    },
  );

  test('closes local sessions, but no replicated ones', () => {
    expect(refusalOf({ op: OpCode.closeSession }, true)).toBe(ErrorCode.ok);
    expect(refusalOf({ op: OpCode.closeSession }, false)).toBe(ErrorCode.notReadOnly);
  });
});
