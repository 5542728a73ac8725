import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { confirm } from './confirmation.ts';
import type { Io } from './io.ts';

function terminal(isTerminal: boolean): { readonly io: Io; readonly stdin: PassThrough; readonly said: () => string } {
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const io: Io = { stdin, stdout: new PassThrough(), stderr, env: {} };
  return { io, stdin, said: () => String(stderr.read() ?? '') };
}

const { signal } = new AbortController();

describe('a question', () => {
  it.each([
    ['y\n', true],
    ['YES\n', true],
    ['n\n', false],
    ['\n', false],
    ['yesterday\n', false],
  ])('is answered by %j with %s', async (answer, isYes) => {
    const { io, stdin, said } = terminal(true);
    const asked = confirm({ io, signal }, 'delete /a?');
    stdin.write(answer);
    expect(await asked).toBe(isYes);
    expect(said()).toContain('delete /a? [y/N] ');
  });

  it('is answered with no when the terminal is closed', async () => {
    const { io, stdin } = terminal(true);
    const asked = confirm({ io, signal }, 'delete /a?');
    stdin.end();
    expect(await asked).toBe(false);
  });

  it('is not asked without a terminal', async () => {
    const { io, said } = terminal(false);
    expect(await confirm({ io, signal }, 'delete /a?')).toBe(true);
    expect(said()).toBe('');
  });

  it('is left when the command is interrupted', async () => {
    const { io, stdin } = terminal(true);
    const controller = new AbortController();
    const asked = confirm({ io, signal: controller.signal }, 'delete /a?');
    controller.abort();
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    expect(stdin.listenerCount('data')).toBe(0);
  });
});
