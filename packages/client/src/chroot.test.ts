import { describe, expect, test } from 'vitest';
import { addChroot, addChrootSequential, isInChroot, nestChroot, parseChroot, removeChroot } from './chroot.ts';
import { BadArgumentsError } from './errors.ts';

describe('a chroot', () => {
  test('is empty when a connect string has none or only a slash', () => {
    expect(parseChroot('')).toBe('');
    expect(parseChroot('/')).toBe('');
    expect(parseChroot('/app/v1')).toBe('/app/v1');
  });

  test.each(['app', '/app/', '/a//b', '/a/../b', '/a\u0000'])('%j is refused', (text) => {
    expect(() => parseChroot(text)).toThrow(BadArgumentsError);
  });

  test('is prepended to every path and is itself the root', () => {
    expect(addChroot('', '/a', 'get')).toBe('/a');
    expect(addChroot('', '/', 'get')).toBe('/');
    expect(addChroot('/app', '/a/b', 'get')).toBe('/app/a/b');
    expect(addChroot('/app', '/', 'get')).toBe('/app');
  });

  test('is removed again, but not from a path that only has the same prefix of letters', () => {
    expect(removeChroot('/app', '/app')).toBe('/');
    expect(removeChroot('/app', '/app/a')).toBe('/a');
    expect(removeChroot('', '/app/a')).toBe('/app/a');
    expect(removeChroot('/app', '/application')).toBe('/application');
    expect(isInChroot('/app', '/application')).toBe(false);
    expect(isInChroot('/app', '/app')).toBe(true);
    expect(isInChroot('', '/anything')).toBe(true);
  });

  test('can be nested', () => {
    expect(nestChroot('', '/a')).toBe('/a');
    expect(nestChroot('/a', '/b')).toBe('/a/b');
    expect(nestChroot('/a', '/')).toBe('/a');
    expect(() => nestChroot('/a', 'b')).toThrow(BadArgumentsError);
  });
});

describe('a path', () => {
  test('that is invalid is refused with the reason and the position', () => {
    const error = catchError(() => addChroot('/app', '/a/../b', 'get'));
    expect(error).toMatchObject({ code: 'BADARGUMENTS', operation: 'get', path: '/a/../b', outcome: 'not-applied' });
    expect(error.message).toBe(
      'get /a/../b: the arguments are not acceptable: the path has the relative name ".." (BADARGUMENTS -8)',
    );
  });

  test('that is not a string rejects with BadArgumentsError, not with a TypeError', () => {
    expect(() => addChroot('', undefined as unknown as string, 'get')).toThrow(/the path is undefined, not a string/);
    expect(() => addChrootSequential('', undefined as unknown as string, 'get')).toThrow(BadArgumentsError);
  });

  test('may end with a slash when the server completes it with a number', () => {
    expect(addChrootSequential('/app', '/queue/', 'create')).toBe('/app/queue/');
    expect(addChrootSequential('/app', '/', 'create')).toBe('/app/');
    expect(addChrootSequential('', '/lock-', 'create')).toBe('/lock-');
    expect(() => addChrootSequential('', '/a//', 'create')).toThrow(/create \/a\/\/: /);
    expect(() => addChroot('', '/queue/', 'create')).toThrow(BadArgumentsError);
  });
});

function catchError(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('nothing was thrown');
}
