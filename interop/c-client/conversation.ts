import type { ConsoleProcess } from '../harness/console-process.ts';

/** A command, and the output expected, in this order, before the next command. */
export type Exchange = readonly [command: string, ...expected: RegExp[]];

/** The shell's `get`, `exists` and `ls` always set watches. */
export const MULTI_THREADED_SCRIPT: readonly Exchange[] = [
  ['create /c', /\[\/c\]: rc = 0\n\tname = \/c\n/],
  ['create /c', /\[\/c\]: rc = -110/],
  ['create /nope/x', /\[\/nope\/x\]: rc = -101/],
  ['create +e /c/e', /\[\/c\/e\]: rc = 0\n\tname = \/c\/e\n/],
  ['create +s /c/s-', /\[\/c\/s-\]: rc = 0\n\tname = \/c\/s-0000000001\n/],
  ['create2 /two', /\[\/two\]: rc = 0\n\tname = \/two\n/, /czxid=7\n/, /version=0\taversion=0\n/],
  ['create +c /container', /\[\/container\]: rc = 0\n\tname = \/container\n/],
  ['create +t=3600000 /ttl', /\[\/ttl\]: rc = 0\n\tname = \/ttl\n/],
  ['get /c', /\/c: rc = 0\n value_len = 3\nnew\n/, /version=0/],
  ['set /c hello', /Watcher CHANGED_EVENT state = CONNECTED_STATE for path \/c\n/, /\/c: rc = 0/, /version=1/],
  ['get /c', /\/c: rc = 0\n value_len = 5\nhello\n/],
  ['ls /c', /\/c: rc = 0\n(\t(e|s-0000000001)\n){2}/],
  ['ls2 /two', /\/two: rc = 0\n/, /czxid=7/],
  ['exists /nope', /Error -101 for \/nope\n/],
  ['wexists /awaited', /Error -101 for \/awaited\n/],
  [
    'create /awaited',
    /Watcher CREATED_EVENT state = CONNECTED_STATE for path \/awaited\n/,
    /rc = 0\n\tname = \/awaited/,
  ],
  ['create /c/k', /Watcher CHILD_EVENT state = CONNECTED_STATE for path \/c\n/, /name = \/c\/k\n/],
  ['delete /c', /\/c: rc = -111/],
  ['delete /c/k', /\/c\/k: rc = 0/],
  ['sync /', /\[\/\]: rc = 0\n/],
  ['config', /\/zookeeper\/config: rc = 0\n value_len = 0\n/],
  ['delete /two', /\/two: rc = 0/],
];

export const SINGLE_THREADED_SCRIPT: readonly Exchange[] = [
  ['create /c hello', /rc 0 \/c\n/],
  ['create /c hello', /rc -110 nothing\n/],
  ['get /c', /rc 0 hello version 0 children 0\n/],
  ['set /c world', /event changed \/c\n/, /rc 0 version 1 children 0\n/],
  ['get /c', /rc 0 world version 1 children 0\n/],
  ['ls /c', /rc 0 \n/],
  ['ephemeral /c/e mine', /event children \/c\n/, /rc 0 \/c\/e\n/],
  ['sequential /c/s- next', /rc 0 \/c\/s-0000000001\n/],
  ['ls /c', /rc 0 e s-0000000001\n/],
  ['exists /nope', /rc -101 no stat\n/],
  ['create /nope x', /event created \/nope\n/, /rc 0 \/nope\n/],
  ['delete /c', /rc -111\n/],
  ['delete /c/e', /event children \/c\n/, /rc 0\n/],
  ['delete /nope', /rc 0\n/],
  ['multi /m text', /rc 0 of 0 0 0 0\n/],
  ['multi /m text', /rc -110 of -110 -2 -2 -2\n/],
  ['get /m', /rc 0 text version 1 children 1\n/],
  ['burst /m 200', /rc 0 after 200\n/],
  [`create /long ${'x'.repeat(300_000)}`, /rc 0 \/long\n/],
  ['get /long', /rc 0 x{300000} version 0 children 0\n/],
];

/** Types the script into a shell after its greeting; returns the exit code after `quit`. */
export async function converse(
  shell: ConsoleProcess,
  greeting: RegExp,
  script: readonly Exchange[],
): Promise<number | null> {
  await shell.waitFor(greeting);
  for (const [line, ...expected] of script) {
    shell.send(line);
    for (const pattern of expected) await shell.waitFor(pattern);
  }
  shell.send('quit');
  return await shell.end();
}
