import { BadVersionError, ConnectionLossError, NodeExistsError, NoNodeError, TransactionError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { fileFailure, InvocationFailure } from './command-failure.ts';
import { CommandExit, EXIT_OF_ERROR } from './exit-code.ts';
import { explainFailure } from './failure.ts';

describe('a failure', () => {
  test('of the service is reported in words of this command line, with an exit code of its own', () => {
    const failure = explainFailure(new NoNodeError({ operation: 'children', path: '/x' }));
    expect(failure).toMatchObject({ exitCode: CommandExit.noNode, code: 'NONODE', path: '/x' });
    expect(failure.message).toMatch(/^cannot list \/x: there is no such znode/);
  });

  test('of a transaction is that of the operation which was refused', () => {
    const cause = new BadVersionError({ operation: 'set', path: '/b' });
    const abouts = ['/a', '/b'].map((path) => ({ operation: 'set', path }));
    const failure = explainFailure(new TransactionError(1, abouts, cause));
    expect(failure).toMatchObject({ exitCode: CommandExit.badVersion, code: 'BADVERSION', path: '/b' });
    expect(failure.message).toMatch(/^operation 2 of the transaction: cannot set \/b: .*; nothing was done$/);
  });

  test('of unknown outcome has a code that says so', () => {
    const failure = explainFailure(new ConnectionLossError({ operation: 'set', path: '/x' }));
    expect(failure.exitCode).toBe(CommandExit.outcomeUnknown);
  });

  test('of the command line, and of a file', () => {
    expect(explainFailure(new InvocationFailure('no'))).toEqual({
      exitCode: 2,
      code: 'INVOCATION',
      message: 'no',
      path: null,
    });
    const missing = Object.assign(new Error('ENOENT: …'), { code: 'ENOENT' });
    expect(explainFailure(fileFailure('cannot read x', missing))).toMatchObject({
      exitCode: CommandExit.file,
      message: 'cannot read x: there is no such file or directory',
    });
  });

  test('that is unexpected is a mistake of this program and says where', () => {
    const failure = explainFailure(new TypeError('x is not a function'));
    expect(failure).toMatchObject({ exitCode: CommandExit.bug, code: 'BUG' });
    expect(failure.message).toContain('failure.test.ts');
  });

  test('that wraps an error of the service reports its code and path', () => {
    const cause = new NodeExistsError({ operation: 'create', path: '/x' });
    const failure = new InvocationFailure('cannot', cause);
    expect(explainFailure(failure)).toMatchObject({ code: 'NODEEXISTS', path: '/x' });
  });
});

test('exit codes are told apart: no number stands for two things, and none is one of a shell', () => {
  const codes = Object.values(CommandExit);
  expect(new Set(codes).size).toBe(codes.length);
  for (const code of codes) expect([125, 126, 127]).not.toContain(code);
  expect(Object.values(EXIT_OF_ERROR).every((code) => codes.includes(code) && code !== CommandExit.ok)).toBe(true);
});
