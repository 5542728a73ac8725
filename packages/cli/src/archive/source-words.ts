import type { Command } from 'commander';

/** Where logs and snapshots are. */
export interface SourceWords {
  readonly dir?: string;
  readonly logDir?: string;
  readonly admin?: string;
}

export function addSourceOptions(command: Command): Command {
  return command
    .option('--dir <directory>', 'the dataDir of a server, ours or Apache’s, that runs or not; or a backup')
    .option('--log-dir <directory>', 'its dataLogDir, if that is another one')
    .option(
      '--admin <url>',
      'the admin port of a running server of ours, https://… with TLS (default: port 8080 of --server)',
    );
}
