import { ChildCommand, type ChildEnd } from '../child/child-command.ts';
import { takeSignals } from '../child/signals.ts';
import { InvocationFailure } from './command-failure.ts';
import type { Io } from './io.ts';

/** The user's editor. @throws InvocationFailure when there is none, and no terminal for vi */
export function editorOf({ env, stdin }: Io, wanted: string | undefined): string {
  const editor = [wanted, env['VISUAL'], env['EDITOR']].find((line) => line !== undefined && line.trim() !== '');
  if (editor !== undefined) return editor;
  if (stdin.isTTY === true) return 'vi';
  throw new InvocationFailure(
    'there is no terminal to edit in; --editor, VISUAL or EDITOR name a program that needs none',
  );
}

/**
 * Opens an editor on the terminal of this process and waits for its end. Ctrl-C is the editor's meanwhile; another signal
 * ends it, and then what it was sent to.
 *
 * @param editor a line of the shell, as in EDITOR: `code --wait`; the file is added to it
 * @throws InvocationFailure when it fails or cannot be run; AbortError when a signal has ended it
 */
export async function openEditor(editor: string, file: string): Promise<void> {
  let taken: NodeJS.Signals | null = null;
  let end: ChildEnd;
  {
    const child = new ChildCommand(['/bin/sh', '-c', `${editor} "$1"`, 'sh', file], {}, ORPHAN_MS);
    using _ = takeSignals((name) => {
      // From a terminal the editor has had it already, and knows what it means there.
      if (child.isOnTerminal && (name === 'SIGINT' || name === 'SIGQUIT')) return;
      taken = name;
      child.signal(name);
    });
    end = await child.ended;
  }
  if (taken !== null) {
    // Now for the usual listeners; it comes with the next turn.
    process.kill(process.pid, taken);
    await new Promise((resolve) => setImmediate(resolve));
    throw new DOMException('interrupted in the editor', 'AbortError');
  }
  if (end.exitCode === 0) return;
  const found = end.exitCode === 127 ? 'there is no such program' : `it failed (exit code ${end.exitCode})`;
  throw new InvocationFailure(
    `cannot edit with "${editor}": ${end.fault ?? found}; VISUAL, EDITOR or --editor name another`,
  );
}

/** How long the editor may take to end when this process is killed. Milliseconds. */
const ORPHAN_MS = 2000;
