import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MEERKAT_IN_SHELL } from '../harness/meerkat-command.ts';
import { describeWith } from '../harness/peers.ts';
import { CliSite } from './harness.ts';

const TERMINAL = fileURLToPath(new URL('./completion/terminal.py', import.meta.url));

/** How each shell is started, and its start file in the home directory. terminal.py waits for the prompt. */
const SHELLS = {
  bash: {
    command: ['bash', '--rcfile', '.bashrc', '-i'],
    file: '.bashrc',
    text: `PS1='READY> '\neval "$(meerkat completion bash)"\n`,
  },
  zsh: {
    command: ['zsh', '-i'],
    file: '.zshrc',
    text: `PS1='READY> '\nautoload -U compinit && compinit -u -D\neval "$(meerkat completion zsh)"\n`,
  },
  fish: {
    command: ['fish', '-i'],
    file: '.config/fish/config.fish',
    text: `function fish_prompt; echo 'READY> '; end\nmeerkat completion fish | source\n`,
  },
} as const;

/** Typed text, with \t for Tab, and the arguments that the command gets. */
type Typed = readonly [line: string, words: readonly string[]];

const LINES: readonly Typed[] = [
  ['prof\t', ['profiles']],
  ['ls --recu\t /', ['ls', '--recursive', '/']],
  ['ls -o nd\t', ['ls', '-o', 'ndjson']],
  ['ls --profile lo\t', ['ls', '--profile', 'local']],
  ['help optio\t', ['help', 'options']],
  ['create --file not\t /x', ['create', '--file', 'notes.txt', '/x']],
  // A path is not followed by a space: it may continue.
  ['ls /tab/alp\t', ['ls', '/tab/alpha']],
  ['ls /tab/alpha\t/b\t', ['ls', '/tab/alpha/beta']],
  [
    'ls --server "$MEERKAT_SERVER" --chroot=/tab /alpha/b\t',
    ['ls', '--server', 'ADDRESS', '--chroot=/tab', '/alpha/beta'],
  ],
  ['ls local:/tab/al\t', ['ls', 'local:/tab/alpha']],
  ['ls /tab/with\t', ['ls', '/tab/with blank']],
];

describe('completion', () => {
  const site = new CliSite('meerkat', {});
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'completion-'));
    for (const path of ['/tab', '/tab/alpha', '/tab/alpha/beta', '/tab/with blank']) await site.client.create(path);
    for (const name of ['bin', 'home', 'home/.config', 'home/.config/meerkat', 'home/.config/fish'])
      mkdirSync(join(directory, name));
    const profiles = { profiles: { local: { server: site.address } } };
    writeFileSync(join(directory, 'home/.config/meerkat/profiles.json'), JSON.stringify(profiles));
    writeFileSync(join(directory, 'home/notes.txt'), '');
    // Completes normally, and otherwise prints its arguments.
    const program = join(directory, 'bin/meerkat');
    writeFileSync(
      program,
      `#!/bin/sh
case $1 in complete | completion) exec ${MEERKAT_IN_SHELL} "$@" ;; esac
'${process.execPath}' -p 'JSON.stringify(process.argv.slice(1))' -- "$@" >> "$LOG"
`,
    );
    chmodSync(program, 0o755);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  for (const [name, { command, file, text }] of Object.entries(SHELLS)) {
    describeWith([name as keyof typeof SHELLS], `in ${name}`, () => {
      test('completes commands, options, values, profiles, files and paths', async () => {
        writeFileSync(join(directory, 'home', file), text);
        const log = join(directory, `${name}.log`);
        const shown = await type(
          log,
          command,
          LINES.map(([line]) => `meerkat ${line}\r`),
          {
            PATH: `${join(directory, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`,
            HOME: join(directory, 'home'),
            LANG: 'C.UTF-8',
            TERM: 'xterm',
            MEERKAT_SERVER: site.address,
            LOG: log,
          },
        );
        const calls = readFileSync(log, 'utf8').trimEnd().split('\n');
        expect(
          calls.map((call) => JSON.parse(call)),
          shown,
        ).toEqual(LINES.map(([, words]) => words.map((word) => (word === 'ADDRESS' ? site.address : word))));
      });
    });
  }

  test('is silent and fast when no server answers', async () => {
    const line = 'meerkat ls --server 127.0.0.1:1 /a';
    expect(await site.run(['complete', '--line', line])).toMatchObject({ exitCode: 0, stdout: ':paths\n', stderr: '' });
    for (const wrong of ['meerkat ls --profile nix /a', 'meerkat ls --auth nix /a', 'meerkat nix --nix /']) {
      expect(await site.run(['complete', '--line', wrong])).toMatchObject({ exitCode: 0, stderr: '' });
    }
  });
});

/** @returns what the terminal showed */
function type(
  log: string,
  command: readonly string[],
  lines: unknown,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn('python3', [TERMINAL, log, ...command], { env, cwd: env['HOME'], stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stdin.end(JSON.stringify(lines));
  return new Promise((resolve, reject) => {
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Error(output))));
  });
}
