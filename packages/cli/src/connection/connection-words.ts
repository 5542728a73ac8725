import type { Command } from 'commander';

/** The connection as the command line has it: every value a word, nothing checked. */
export interface ConnectionWords {
  readonly server?: string;
  readonly profile?: string;
  readonly chroot?: string;
  readonly auth?: readonly string[];
  readonly sasl?: string;
  readonly tls?: boolean;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsServerName?: string;
  readonly tlsInsecure?: boolean;
  readonly sessionTimeout?: string;
  readonly connectTimeout?: string;
  /** How long one request may take; the search for a server takes no longer either. */
  readonly timeout?: string;
  readonly readOnly?: boolean;
}

/** The options that say which service a command talks to, and as whom. */
export function addConnectionOptions(command: Command): Command {
  return command
    .optionsGroup('Connection:')
    .option('--server <hosts>', 'host:port,host:port/chroot (MEERKAT_SERVER; default 127.0.0.1:2181)')
    .option('--profile <name>', 'a connection of the profiles file (MEERKAT_PROFILE); see "meerkat profiles"')
    .option('--chroot <path>', 'all paths are below this znode')
    .option(
      '--auth <scheme:id>',
      'credentials, as digest:user:password; @file reads them; repeatable (MEERKAT_AUTH)',
      collect,
    )
    .option('--sasl <user:password>', 'SASL DIGEST-MD5; @file reads it; kerberos: by ticket (MEERKAT_SASL)')
    .option('--tls', 'TLS, with the certificates of this machine (MEERKAT_TLS=1)')
    .option('--tls-ca <file>', 'TLS: certificates of those who sign servers, PEM (MEERKAT_TLS_CA)')
    .option('--tls-cert <file>', 'TLS: our certificate, PEM (MEERKAT_TLS_CERT)')
    .option('--tls-key <file>', 'TLS: its key, PEM (MEERKAT_TLS_KEY; passphrase in MEERKAT_TLS_PASSPHRASE)')
    .option('--tls-server-name <name>', 'TLS: the name in the certificate of the server, if it is not the host')
    .option('--tls-insecure', 'TLS: believe any certificate; for trials')
    .option('--session-timeout <time>', 'how long the service keeps a silent session: 10s, 30000ms (default 10s)')
    .option('--connect-timeout <time>', 'how long a server is looked for (default 5s, or --timeout if that is less)')
    .option('--read-only', 'take a server without a quorum too, for reads');
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}
