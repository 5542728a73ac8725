import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** An empty environment: no Node.js, no settings, no home. */
export const BARE: NodeJS.ProcessEnv = { PATH: '/nonexistent', HOME: '/nonexistent', LANG: 'C.UTF-8' };

/**
 * Builds the executable like `npm run build:single`, or copies the one in the variable MEERKAT_SINGLE_FILE.
 *
 * @param file target path
 */
export function buildSingleFile(file: string, arch: 'x64' | 'arm64'): void {
  const { MEERKAT_SINGLE_FILE: built } = process.env;
  if (built !== undefined && arch === process.arch) {
    copyFileSync(built, file);
    return;
  }
  const args = ['deploy/single/build.mjs', '--arch', arch, '--out', file];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} failed:\n${stdout}${stderr}`);
}

/** A program that runs until it is stopped, with its output. */
export class Program implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output = '';

  constructor([program = '', ...args]: readonly string[], cwd: string, env: NodeJS.ProcessEnv = BARE) {
    this.child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    const collect = (chunk: Buffer): void => {
      this.output += chunk;
    };
    this.child.stdout?.on('data', collect);
    this.child.stderr?.on('data', collect);
    this.exited = once(this.child, 'close').then(([code]) => code);
  }

  /** Its command line, from /proc. */
  get commandLine(): readonly string[] {
    return readFileSync(`/proc/${this.child.pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  }

  /** @returns its exit code */
  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    return await this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}
