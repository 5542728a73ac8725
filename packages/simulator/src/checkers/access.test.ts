import { type Acl, OPEN_ACL, OpCode, Perm } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { OperationError } from '../history.ts';
import { isAllowed, SUPER } from './access.ts';
import { ClientScript, deleteTxn, ERROR_TXN, setTxn } from './testing/client-script.ts';

const ANYONE = { scheme: 'world', id: 'anyone' } as const;
const ANN = { scheme: 'digest', id: 'ann:secret' } as const;
const BOB = { scheme: 'digest', id: 'bob:secret' } as const;
const ANN_ONLY: readonly Acl[] = [{ ...ANN, perms: Perm.all }];
const BLIND: readonly Acl[] = [
  { ...ANYONE, perms: Perm.all & ~Perm.read },
  { ...ANN, perms: Perm.all },
];
const NOAUTH: OperationError = { code: 'NOAUTH', outcome: 'not-applied', failedPart: null };

it('an ACL grants access to those it names', () => {
  expect(isAllowed(OPEN_ACL, Perm.admin, null)).toBe(true);
  expect(isAllowed(ANN_ONLY, Perm.read, ANN)).toBe(true);
  expect(isAllowed(ANN_ONLY, Perm.read, BOB)).toBe(false);
  expect(isAllowed(ANN_ONLY, Perm.read, { ...ANN, scheme: 'sasl' })).toBe(false);
  expect(isAllowed(ANN_ONLY, Perm.read, null)).toBe(false);
  expect(isAllowed(ANN_ONLY, Perm.read, SUPER)).toBe(true);
  expect(isAllowed(BLIND, Perm.write, null)).toBe(true);
  expect(isAllowed(BLIND, Perm.read | Perm.admin, null)).toBe(true);
  expect(isAllowed(BLIND, Perm.read, null)).toBe(false);
});

/** c1 is ann and has created `/a` with these permissions; c2 is anonymous. */
function service(acl: readonly Acl[]): ClientScript {
  const script = new ClientScript();
  script.history.identities.set('c1', ANN);
  script.connect('c1');
  script.connect('c2');
  script.make('c1', '/a', { acl });
  return script;
}

describe('C7: a read', () => {
  it('succeeds with permission, and is refused without', () => {
    const script = service(ANN_ONLY);
    script.read('c1', 'get', '/a');
    script.read('c2', 'get', '/a', { error: NOAUTH });
    script.read('c2', 'children', '/a', { error: NOAUTH });
    expect(script.violations).toEqual([]);
  });

  it('succeeds without permission', () => {
    const script = service(ANN_ONLY);
    script.read('c2', 'get', '/a');
    expect(script.broken).toEqual(['C7']);
  });

  it('is refused despite permission', () => {
    const script = service(OPEN_ACL);
    script.read('c2', 'get', '/a', { error: NOAUTH });
    expect(script.broken).toEqual(['C7']);
  });
});

describe('a write', () => {
  it('C4: succeeds without permission, or is refused with it', () => {
    const granted = service(ANN_ONLY);
    granted.set('c2', '/a', 'x', 1);
    expect(granted.broken).toEqual(['C4']);
    const refused = service(OPEN_ACL);
    refused.write('c2', { op: 'set', path: '/a', data: 'x', version: -1 }, ERROR_TXN, { error: NOAUTH });
    expect(refused.broken).toEqual(['C4']);
    const right = service(ANN_ONLY);
    right.write('c2', { op: 'set', path: '/a', data: 'x', version: -1 }, ERROR_TXN, { error: NOAUTH });
    right.set('c1', '/a', 'x', 1);
    // The parent's permissions decide.
    right.write('c2', { op: 'delete', path: '/a', version: -1 }, deleteTxn('/a'));
    expect(right.violations).toEqual([]);
  });

  it('C4: changes permissions without being allowed to', () => {
    for (const [client, broken] of [
      ['c1', []],
      ['c2', ['C4']],
    ] as const) {
      const script = service(ANN_ONLY);
      const result = { op: 'setAcl', stat: script.stat('/a', script.lastZxid, { aversion: 1 }) } as const;
      const txn = { type: OpCode.setACL, path: '/a', acl: OPEN_ACL, version: 1 } as const;
      script.write(client, { op: 'setAcl', path: '/a', acl: OPEN_ACL, version: 0 }, txn, { result });
      expect(script.broken).toEqual(broken);
    }
  });

  it('C4: a multi checks the version of what its client may not read', () => {
    for (const [acl, broken] of [
      [OPEN_ACL, []],
      [BLIND, ['C4']],
    ] as const) {
      const script = service(acl);
      const parts = [
        { op: 'check', path: '/a', version: 0 },
        { op: 'set', path: '/', data: 'x', version: -1 },
      ] as const;
      const check = { type: OpCode.check, path: '/a', version: 1 } as const;
      const txn = { type: OpCode.multi, txns: [check, setTxn('/', 'x', 1)] };
      script.write('c2', { op: 'multi', parts }, txn);
      expect(script.broken).toEqual(broken);
    }
  });
});

describe('a watch', () => {
  it('C7: notifies a client of a change that it may not read', () => {
    const script = service(ANN_ONLY);
    script.history.identities.set('c3', ANN);
    script.connect('c3');
    const { zxid } = script.set('c1', '/a', 'x', 1);
    script.event('c3', 'changed', '/a', zxid);
    expect(script.violations).toEqual([]);
    script.event('c2', 'changed', '/a', zxid);
    expect(script.broken).toEqual(['C7']);
  });

  it('may be used up by a change that its client may not read', () => {
    const script = service(OPEN_ACL);
    const read = script.read('c2', 'get', '/a', { hasWatch: true });
    const txn = { type: OpCode.setACL, path: '/a', acl: ANN_ONLY, version: 1 } as const;
    const request = { op: 'setAcl', path: '/a', acl: ANN_ONLY, version: -1 } as const;
    const stat = script.stat('/a', script.lastZxid, { aversion: 1 });
    script.write('c1', request, txn, { result: { op: 'setAcl', stat } });
    script.stir(() => script.set('c1', '/a', 'x', 1));
    script.read('c2', 'exists', '/b');
    expect(read.zxid).not.toBeNull();
    expect(script.violations).toEqual([]);
  });
});
