import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { converse, MULTI_THREADED_SCRIPT, SINGLE_THREADED_SCRIPT } from './c-client/conversation.ts';
import { ConsoleProcess } from './harness/console-process.ts';
import { describeWith, type Peer } from './harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

const CLI_MT = '/usr/lib/zookeeper/bin/cli_mt';
const SINGLE_THREADED = fileURLToPath(new URL('./c-client/single_threaded.py', import.meta.url));

for (const kind of SERVER_KINDS) {
  const apache: Peer[] = kind === 'apache' ? ['apache'] : [];
  describeWith([...apache, 'cliMt'], `the C shell cli_mt (${kind})`, () => {
    test('creates, reads, watches and deletes', async () => {
      await using server = await ServerProcess.start(kind);
      await using shell = new ConsoleProcess(CLI_MT, ['-h', `127.0.0.1:${server.port}`]);
      expect(await converse(shell, /CONNECTED_STATE/, MULTI_THREADED_SCRIPT)).toBe(0);
    });
  });

  describeWith([...apache, 'libzookeeperSt'], `the single-threaded C library (${kind})`, () => {
    test('creates, reads, watches and deletes', async () => {
      await using server = await ServerProcess.start(kind);
      await using shell = new ConsoleProcess('/usr/bin/python3', [SINGLE_THREADED, `127.0.0.1:${server.port}`]);
      expect(await converse(shell, /connected/, SINGLE_THREADED_SCRIPT)).toBe(0);
    });
  });
}
