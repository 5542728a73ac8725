import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('./systemd/', import.meta.url));

describeWith(['packagingTools', 'debian'], 'the Debian package', () => {
  let directory = '';
  let file = '';

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'meerkat-deb-'));
    const { MEERKAT_SINGLE_FILE: executable } = process.env;
    const args = ['deploy/debian/build.mjs', '--quick', '--out', directory];
    if (executable !== undefined) args.push('--executable', executable);
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${args.join(' ')} failed:\n${stdout}${stderr}`);
    file = /^(\/.*\.deb): /m.exec(stdout)?.[1] ?? '';
  });

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test.concurrent('passes lintian', async () => {
    // Spelling in the executable, mostly Node.js', is only informational, and takes half of the time.
    const options = ['--allow-root', '--dont-check-part', 'binaries/spelling', '--fail-on', 'error,warning'];
    const lintian = spawn('lintian', [...options, file], { stdio: 'inherit' });
    expect((await once(lintian, 'exit'))[0]).toBe(0);
  });

  test.concurrent('is installed, started, restarted, upgraded, removed and purged under systemd', async () => {
    const machine = join(directory, 'machine');
    // Killing its process is like switching off the machine.
    const boot = spawn(join(HERE, 'boot.sh'), [machine, file, join(HERE, 'life-of-the-package.sh')], {
      stdio: 'inherit',
    });
    await once(boot, 'exit');
    const output = readFileSync(join(machine, 'upper/root/output'), 'utf8');
    const found = Object.fromEntries(
      output.split('\n').flatMap((line) => {
        const at = line.indexOf(': ');
        return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 2).trim()]];
      }),
    );
    expect(found).toEqual({
      install: 'exit code 0',
      // The start has waited for READY=1.
      started: 'clients are served active',
      enabled: 'enabled',
      user: 'meerkat 750 meerkat 750',
      process: 'meerkat',
      verify: '',
      exposure: expect.stringMatching(/^1\.\d$/),
      create: '/greeting',
      ready: 'ok',
      manual: '/usr/share/man/man1/meerkat.1.gz',
      restart: 'clients are served active; hello',
      killed: 'clients are served active; hello',
      stop: 'success 0',
      journal: '2 graceful ends, 0 lost messages',
      // It is not restarted repeatedly.
      'bad configuration': '0 2 failed',
      upgrade: 'exit code 0; clients are served active; hello; 1 line kept; new process',
      'member alone': expect.stringMatching(/activating$/),
      'member of two': expect.stringMatching(/^clients are served.* active$/),
      remove: 'exit code 0; /etc/meerkat/zoo.cfg /var/lib/meerkat/version-2',
      purge: 'exit code 0',
      left: '',
    });
  });
});
