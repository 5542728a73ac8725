import { OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { Data } from './data.ts';
import { BadArgumentsError } from './errors.ts';
import { type CreateShape, checkedVersion, makeCreate, makeSetData } from './write-requests.ts';

const about = { operation: 'create', path: '/a' };

describe('a create', () => {
  // Pairs of op codes and CreateMode flags as in the protocol's table: 4 with 19, 5 and 6 with 21.
  test.each<[CreateShape, number, number, number]>([
    [{}, 15, 0, -1],
    [{ mode: 'ephemeral' }, 15, 1, -1],
    [{ sequential: true }, 15, 2, -1],
    [{ mode: 'ephemeral', sequential: true }, 15, 3, -1],
    [{ mode: 'container' }, 19, 4, -1],
    [{ ttlMs: 5000 }, 21, 5, 5000],
    [{ ttlMs: 5000, sequential: true }, 21, 6, 5000],
  ])('of %j has the op code and flags of that kind', (shape, op, flags, ttl) => {
    expect(makeCreate('/a', 'x', shape, about)).toMatchObject({ op, flags, ttl, path: '/a' });
  });

  test('is open to everyone and empty by default', () => {
    const request = makeCreate('/a', undefined, {}, about);
    expect(request.acl).toEqual([{ perms: 31, scheme: 'world', id: 'anyone' }]);
    expect(request.data).toHaveLength(0);
    expect(makeCreate('/a', null, {}, about).data).toBeNull();
    expect(makeCreate('/a', 'é', {}, about).data).toEqual(new Uint8Array([0xc3, 0xa9]));
  });

  test.each<[CreateShape, RegExp]>([
    [{ mode: 'container', sequential: true }, /container cannot be sequential/],
    [{ mode: 'ephemeral', ttlMs: 1 }, /is persistent, not ephemeral/],
    [{ ttlMs: 0 }, /from 1 to 1099511627775, not 0/],
    [{ ttlMs: 1.5 }, /not 1.5/],
    [{ ttlMs: 2 ** 40 }, /not 1099511627776/],
    [{ mode: 'temporary' as 'persistent' }, /not temporary/],
  ])('of %j is refused before it is sent', (shape, message) => {
    expect(() => makeCreate('/a', '', shape, about)).toThrow(message);
    expect(() => makeCreate('/a', '', shape, about)).toThrow(BadArgumentsError);
  });

  test('of invalid data is refused', () => {
    expect(() => makeCreate('/a', 7 as unknown as Data, {}, about)).toThrow(/not number; a codec/);
  });
});

describe('a version', () => {
  test('that is omitted means any', () => {
    expect(checkedVersion(undefined, about)).toBe(-1);
    expect(makeSetData('/a', '', undefined, about)).toMatchObject({ op: OpCode.setData, version: -1 });
  });

  test.each([Number.NaN, 1.5, 2 ** 31, Number.POSITIVE_INFINITY])('of %d is refused', (version) => {
    expect(() => checkedVersion(version, about)).toThrow(BadArgumentsError);
  });

  test('may be negative after wrapping around', () => {
    expect(checkedVersion(-(2 ** 31), about)).toBe(-(2 ** 31));
  });
});
