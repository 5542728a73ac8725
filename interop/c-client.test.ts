import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ConsoleProcess } from './harness/console-process.ts';
import { describeWith, type Peer } from './harness/peers.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

const CLI_MT = '/usr/lib/zookeeper/bin/cli_mt';
const SINGLE_THREADED = fileURLToPath(new URL('./c-client/single_threaded.py', import.meta.url));

/** A command, and the texts that must appear, in this order, before the next command. */
type Exchange = readonly [command: string, ...expected: RegExp[]];

/** The shell's `get`, `exists` and `ls` leave watches by themselves. */
const MULTI_THREADED_SCRIPT: readonly Exchange[] = [
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

const SINGLE_THREADED_SCRIPT: readonly Exchange[] = [
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
];

for (const kind of SERVER_KINDS) {
  const apache: Peer[] = kind === 'apache' ? ['apache'] : [];
  describeWith([...apache, 'cliMt'], `the C shell cli_mt (${kind})`, () => {
    test('creates, reads, watches and deletes', async () => {
      const code = await converse(kind, CLI_MT, (address) => ['-h', address], {
        greeting: /CONNECTED_STATE/,
        script: MULTI_THREADED_SCRIPT,
      });
      expect(code).toBe(0);
    });
  });

  describeWith([...apache, 'libzookeeperSt'], `the single-threaded C library (${kind})`, () => {
    test('creates, reads, watches and deletes', async () => {
      const code = await converse(kind, '/usr/bin/python3', (address) => [SINGLE_THREADED, address], {
        greeting: /connected/,
        script: SINGLE_THREADED_SCRIPT,
      });
      expect(code).toBe(0);
    });
  });
}

/** Types the script into a shell that is connected to a fresh server; returns the exit code after `quit`. */
async function converse(
  kind: ServerKind,
  command: string,
  argsFor: (address: string) => string[],
  conversation: { readonly greeting: RegExp; readonly script: readonly Exchange[] },
): Promise<number | null> {
  await using server = await ServerProcess.start(kind);
  await using shell = new ConsoleProcess(command, argsFor(`127.0.0.1:${server.port}`));
  await shell.waitFor(conversation.greeting);
  for (const [line, ...expected] of conversation.script) {
    shell.send(line);
    for (const pattern of expected) await shell.waitFor(pattern);
  }
  shell.send('quit');
  return await shell.end();
}
