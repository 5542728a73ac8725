import { spawnSync } from 'node:child_process';
import { env, pid } from 'node:process';
import { fileURLToPath } from 'node:url';

/**
 * Builds the packages before tests that load them or start the command `meerkat`; fast when nothing has changed. In a
 * new clone nothing is built yet, so modules that need the packages are imported afterwards.
 */
export default async function build(): Promise<void> {
  // Each project of a run calls it; only the first has something to build.
  if (env[BUILT_BY] === String(pid)) return;
  const root = fileURLToPath(new URL('..', import.meta.url));
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the packages do not build, so nothing can be started:\n${stdout}${stderr}`);
  const { archiveApache } = await import('./harness/archive.ts');
  await archiveApache();
  env[BUILT_BY] = String(pid);
}

const BUILT_BY = 'TESTS_BUILT_BY';
