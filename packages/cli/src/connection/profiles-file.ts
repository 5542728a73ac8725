import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../run/io.ts';
import { filePath, homeDirectory } from './file-path.ts';

/** Where profiles are, and their secrets apart, beside them. */
export interface ProfilesFile {
  readonly directory: string;
  /** profiles.json */
  readonly path: string;
  /** secrets.json, which only its owner may read. */
  readonly secretsPath: string;
  readonly exists: boolean;
}

/** MEERKAT_CONFIG_DIR, else $XDG_CONFIG_HOME/meerkat, else ~/.config/meerkat. A variable that is empty is not set. */
export function profilesFile(env: Io['env']): ProfilesFile {
  const own = env['MEERKAT_CONFIG_DIR'] ?? '';
  const shared = env['XDG_CONFIG_HOME'] ?? '';
  const directory =
    own !== ''
      ? filePath(own, process.cwd(), env)
      : join(shared === '' ? join(homeDirectory(env), '.config') : shared, 'meerkat');
  const path = join(directory, 'profiles.json');
  return { directory, path, secretsPath: join(directory, 'secrets.json'), exists: existsSync(path) };
}
