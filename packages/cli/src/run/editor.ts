import { spawn } from 'node:child_process';
import { InvocationFailure } from './command-failure.ts';
import type { Io } from './io.ts';

/** The person's editor. @throws InvocationFailure when there is none, and nobody at a terminal to use vi */
export function editorOf({ env, stdin }: Io, wanted: string | undefined): string {
  const editor = [wanted, env['VISUAL'], env['EDITOR']].find((line) => line !== undefined && line.trim() !== '');
  if (editor !== undefined) return editor;
  if (stdin.isTTY === true) return 'vi';
  throw new InvocationFailure(
    'there is no terminal to edit in; --editor, VISUAL or EDITOR name a program that needs none',
  );
}

/**
 * Opens an editor on the terminal of this process and waits for its end.
 *
 * @param editor a line of the shell, as in EDITOR: `code --wait`; the file is added to it
 * @throws InvocationFailure when it fails or cannot be run
 */
export async function openEditor(editor: string, file: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code));
  });
  if (exitCode === 0) return;
  const found = exitCode === 127 ? 'there is no such program' : `it failed (exit code ${exitCode ?? 'of a signal'})`;
  throw new InvocationFailure(`cannot edit with "${editor}": ${found}; VISUAL, EDITOR or --editor name another`);
}
