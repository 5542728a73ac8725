import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Builds the packages before tests that start the command `meerkat`; quick when nothing has changed. */
export default function build(): void {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the packages do not build, so nothing can be started:\n${stdout}${stderr}`);
}
