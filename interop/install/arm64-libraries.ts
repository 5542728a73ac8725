import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The shared libraries that Node.js needs. */
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1'];

/**
 * Unpacks Debian's libraries for arm64, without adding the architecture to this machine.
 *
 * @param parent a temporary directory of the test
 * @returns the root directory of the libraries
 */
export function fetchArm64Libraries(parent: string): string {
  const [root, state] = [join(parent, 'root'), join(parent, 'apt')];
  mkdirSync(root);
  for (const folder of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(state, folder), { recursive: true });
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(
    join(state, 'sources.list'),
    `deb [arch=arm64 signed-by=${keys}] http://deb.debian.org/debian bookworm main\n`,
  );
  const options = {
    'APT::Architecture': 'arm64',
    'APT::Architectures': 'arm64',
    'APT::Sandbox::User': 'root',
    'Dir::State': state,
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(state, 'cache'),
    'Dir::Etc::sourcelist': join(state, 'sources.list'),
    'Dir::Etc::sourceparts': '/nonexistent',
  };
  const aptGet = (...words: string[]): void => {
    const settings = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    execFileSync('apt-get', [...settings, '-q', ...words], { cwd: root, stdio: 'pipe' });
  };
  aptGet('update');
  aptGet('download', ...PACKAGES);
  for (const file of readdirSync(root)) execFileSync('dpkg-deb', ['-x', join(root, file), root]);
  return root;
}
