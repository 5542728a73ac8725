import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect } from '@meerkat/client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { MEERKAT_COMMAND } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { Terminal } from './shell/terminal.ts';

describeWith(['tmux'], 'meerkat shell in a terminal', () => {
  let server: ServerProcess;
  let client: Client;
  let terminal: Terminal;
  const directory = mkdtempSync(join(tmpdir(), 'shell-state-'));

  beforeAll(async () => {
    server = await ServerProcess.start('meerkat', { config: { tickTime: 500, maxSessionTimeout: 30_000 } });
    client = await connect(address(), { sessionTimeoutMs: 30_000 });
    for (const path of ['/app', '/app/config', '/app/with blank', '/many']) await client.create(path, 'data');
    await Promise.all(Array.from({ length: 3000 }, (_, i) => client.create(`/many/child-${i}`)));
  });
  afterAll(async () => {
    await client.close();
    await server.dispose();
    rmSync(directory, { recursive: true });
  });
  beforeEach(async () => {
    await client.set('/app/config', 'data');
    terminal = await start();
  });
  afterEach(() => terminal[Symbol.asyncDispose]());

  const address = (): string => `127.0.0.1:${server.port}`;
  const prompt = (path = '/', state = 'CONNECTED'): string => `[${address()}(${state}) ${path}]`;

  async function start(...words: readonly string[]): Promise<Terminal> {
    const env = { MEERKAT_SERVER: address(), XDG_STATE_HOME: directory };
    const started = await Terminal.start([...MEERKAT_COMMAND, 'shell', ...words], env);
    await started.until('the first prompt', (screen) => screen.endsWith(prompt()));
    return started;
  }

  /** Waits until the last line of the screen is this one. */
  function untilLast(line: string): Promise<string> {
    return terminal.until(line, (screen) => screen.split('\n').at(-1) === line);
  }

  test('completes commands, options and paths, asking the server while one types on', async () => {
    await terminal.type('getAl');
    await terminal.press('Tab');
    await untilLast(`${prompt()} getAllChildrenNumber`);
    await terminal.type('/ma');
    await terminal.press('Tab');
    await untilLast(`${prompt()} getAllChildrenNumber /many/`);
    await terminal.press('Enter');
    await terminal.until('the count', (screen) => screen.endsWith(`\n3000\n${prompt()}`));
    // Thousands of candidates: completes their common prefix, then lists the first ones.
    await terminal.type('get /many/ch');
    await terminal.press('Tab');
    await untilLast(`${prompt()} get /many/child-`);
    await terminal.press('Tab', 'Tab');
    await terminal.until('the list', (screen) => screen.includes('… 2900 more') && screen.includes('child-1000'));
    await terminal.press('C-c');
    // Names are quoted or escaped as needed; relative paths are below the current znode.
    await terminal.enter('cd /app');
    await untilLast(prompt('/app'));
    await terminal.type('get w');
    await terminal.press('Tab');
    await untilLast(`${prompt('/app')} get with\\ blank`);
    await terminal.press('C-c');
    await terminal.type('get "../app/w');
    await terminal.press('Tab');
    await untilLast(`${prompt('/app')} get "../app/with blank"`);
    await terminal.press('C-c');
    await terminal.type('ls --rec');
    await terminal.press('Tab');
    await untilLast(`${prompt('/app')} ls --recursive`);
    await terminal.type('-o nd');
    await terminal.press('Tab');
    await untilLast(`${prompt('/app')} ls --recursive -o ndjson`);
    await terminal.press('Enter');
    await terminal.until('the listing', (screen) => /\{"path":"\/app\/config"[\s\S]*\n\[.*\]$/.test(screen));
    await terminal.type('addWatch -m ');
    await terminal.press('Tab', 'Tab');
    await untilLast(`${prompt('/app')} addWatch -m PERSISTENT`);
  });

  test('keeps the history for the next shell, but no credentials', async () => {
    await terminal.enter('addauth digest ann:secret');
    await terminal.enter('set /app <<END');
    await terminal.enter('{"on":');
    await untilLast('END>');
    await terminal.enter(' true}');
    await terminal.enter('END');
    await untilLast(prompt());
    await terminal.enter('get /app');
    await terminal.until('the value', (screen) => screen.includes('"on": true'));
    await terminal.enter('history 3');
    await terminal.until('numbers', (screen) => screen.includes('\n2 - get /app\n3 - history 3\n'));
    await terminal.enter('redo 2');
    await terminal.until('it again', (screen) => screen.split('"on": true').length === 3);
    await terminal.enter('quit');
    await terminal.until('the end', (screen) => screen.endsWith('ended with 0'));
    const file = join(directory, 'meerkat', 'history');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).not.toContain('secret');
    await terminal[Symbol.asyncDispose]();
    terminal = await start();
    await terminal.press('Up', 'Up', 'Up', 'Up');
    await untilLast(`${prompt()} get /app`);
    // A multi-line command is one entry, as typed.
    await terminal.press('Up');
    // Node.js 24 marks the continuation lines.
    const whole = 'set /app <<END\n{"on":\n true}\nEND';
    await terminal.until('the whole command', (screen) => screen.replaceAll('\n| ', '\n').endsWith(whole));
    await terminal.press('Enter');
    await untilLast(prompt());
  });

  test('prints events above the input line, however long it is', async () => {
    await terminal.enter('addWatch /app');
    await terminal.enter('get -w /app/config');
    await terminal.until('the value', (screen) => screen.endsWith(`\ndata\n${prompt()}`));
    const typed = `set /app ${'0123456789'.repeat(12)}`;
    await terminal.type(typed);
    await terminal.until('the line', (screen) => withoutBlanks(screen).endsWith(withoutBlanks(typed)));
    await client.set('/app/config', 'changed');
    // The line is redrawn after the events.
    const line = withoutBlanks(`${prompt()}${typed}`);
    const screen = await terminal.until(
      'both events above the line',
      (text) => text.split('WATCHER::').length === 3 && withoutBlanks(text).endsWith(line),
    );
    expect(screen).toContain(
      'WATCHER:: WatchedEvent state:SyncConnected type:NodeDataChanged path:/app/config zxid:0x',
    );
    expect(screen.split(typed.slice(0, 20))).toHaveLength(2);
    await terminal.press('C-a');
    await terminal.press('C-k');
    await terminal.enter('printwatches off');
    await terminal.enter('printwatches');
    await terminal.until('the switch', (text) => text.includes('printwatches is off'));
    await client.set('/app/config', 'unheard');
    await terminal.enter('get /app/config');
    const silent = await terminal.until('the value', (text) => text.includes('\nunheard\n'));
    expect(silent.split('WATCHER::')).toHaveLength(3);
  });

  test('Ctrl-C stops a command or clears a line; twice on an empty line exits', async () => {
    await terminal.enter('wait /never; pwd');
    await terminal.until('it waits', (screen) => screen.includes('waiting: '));
    await terminal.press('C-c');
    const stopped = await terminal.until('the prompt', (screen) => screen.endsWith(prompt()));
    expect(stopped).not.toContain('\n/\n');
    await terminal.type('get /app');
    await terminal.press('C-c');
    await terminal.until('an empty line', (screen) => screen.endsWith(`get /app^C\n${prompt()}`));
    await terminal.enter("set /app 'open");
    await untilLast("'>");
    await terminal.press('C-c');
    await untilLast(prompt());
    await terminal.press('C-c');
    await terminal.until('what to do', (screen) => screen.includes('Ctrl-C once more, or Ctrl-D, leaves'));
    await terminal.press('C-c');
    await terminal.until('the end', (screen) => screen.includes('ended with 130'));
    await terminal.untilCooked();
  });

  test('runs pasted lines in sequence, and leaves the terminal to commands that prompt', async () => {
    await terminal.paste('create /p\ncreate /p/q\nls /p\nget /p/');
    await terminal.until('the three commands', (screen) => screen.includes('Created /p/q\nq\n'));
    await terminal.type('q');
    await untilLast(`${prompt()} get /p/q`);
    await terminal.press('C-c');
    await terminal.enter('rm -r /p');
    await terminal.until('the question', (screen) => /\? .*$/.test(screen.split('\n').at(-1) ?? ''));
    await terminal.enter('y');
    await terminal.until('the prompt', (screen) => screen.endsWith(prompt()));
    expect(await client.exists('/p')).toBeNull();
    await terminal.enter('set /app -');
    await terminal.untilCooked();
    await terminal.enter('typed');
    await terminal.press('C-d');
    await untilLast(prompt());
    await terminal.enter('get /app');
    await terminal.until('the value', (screen) => screen.endsWith(`get /app\ntyped\n${prompt()}`));
    await terminal.press('C-d');
    await terminal.until('the end', (screen) => screen.endsWith('ended with 0'));
  });

  test('shows in the prompt that the connection is lost, and what a new session means', async () => {
    await terminal[Symbol.asyncDispose]();
    terminal = await start('--session-timeout', '5s');
    await terminal.enter('create -e /mine');
    await terminal.enter('get -w /app/config');
    await terminal.until('the value', (screen) => screen.endsWith(`data\n${prompt()}`));
    await terminal.type('ls /');
    await untilLast(`${prompt()} ls /`);
    await server.pause();
    await untilLast(`${prompt('/', 'SUSPENDED')} ls /`);
    await untilLast(`${prompt('/', 'LOST')} ls /`);
    // Its sessions are lost when it restarts without its data.
    await server.kill();
    rmSync(server.dataDirectory, { recursive: true });
    await server.restart();
    const screen = await untilLast(`${prompt()} ls /`);
    for (const hint of ['may be over', 'with a new session 0x', 'ephemeral znodes of the old one are gone']) {
      expect(withoutBlanks(screen)).toContain(withoutBlanks(hint));
    }
    await terminal.press('Enter');
    await terminal.until('the root', (text) => text.includes('zookeeper'));
  });
});

/** Removes all whitespace, because the terminal wraps lines anywhere. */
function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, '');
}
