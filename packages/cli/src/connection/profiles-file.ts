import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Io } from '../run/io.ts';

/** Where profiles are, and their secrets apart, beside them. */
export interface ProfilesFile {
  /** profiles.json */
  readonly path: string;
  /** secrets.json, which nobody but its owner may read. */
  readonly secretsPath: string;
  readonly exists: boolean;
}

/** MEERKAT_CONFIG_DIR, else $XDG_CONFIG_HOME/meerkat, else ~/.config/meerkat. */
export function profilesFile(env: Io['env']): ProfilesFile {
  const directory = env['MEERKAT_CONFIG_DIR'] ?? join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'meerkat');
  const path = join(directory, 'profiles.json');
  return { path, secretsPath: join(directory, 'secrets.json'), exists: existsSync(path) };
}
