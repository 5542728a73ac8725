import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterOptions, PastTrees } from '@meerkat/console';
import type { SourceWords } from '../archive/source-words.ts';
import { parseDuration } from '../connection/duration.ts';
import { ADMIN_PORT, adminPorts, parsePorts } from '../draining/admin-ports.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';

interface Options extends SourceWords {
  readonly write?: boolean;
  readonly listen: string;
  readonly prefix: string;
  readonly hostName: readonly string[];
  /** --no-key makes it false. */
  readonly key: boolean;
  readonly also: readonly string[];
  readonly httpPort: string;
  readonly https?: boolean;
  readonly for?: string;
}

/** `console`: a server of HTTP, with a page that shows services to people. */
export const console: DefineCommand = (command, host) => {
  command
    .description(
      'Show tree, changes, sessions, locks and servers of a service in a browser, live, until Ctrl-C. Znodes are only read, ' +
        'unless --write is given. Opening the printed address logs in; credentials of the command line ' +
        'can be used there.',
    )
    .option('--write', 'let znodes and members be changed')
    .option('--listen <host:port>', 'where the page is; port 0: any free one', '127.0.0.1:8090')
    .option('--also <profile>', 'another service, by the name of its profile; repeatable', collect, [])
    .option('--prefix <path>', 'where the page is below the root, behind a proxy that does not take it off', '')
    .option('--host-name <name>', 'a name under which browsers may ask, behind a proxy; repeatable', collect, [])
    .option('--no-key', 'let in anyone who can reach the port, without the key of the address')
    .option('--dir <directory>', 'show the history of znodes of the first service from this dataDir or backup')
    .option('--log-dir <directory>', 'its dataLogDir, if that is another one')
    .option('--admin <url>', 'show the history from the admin port of a running server of ours')
    .option('--http-port <ports>', 'admin ports, to end sessions: one for all servers, or one each with commas', '8080')
    .option('--https', 'they speak TLS: with the --tls options')
    .option('--for <time>', 'end after 10s, 2m')
    .addHelpText(
      'after',
      examples([
        ['meerkat console --server zk1,zk2,zk3', 'prints an address to open; only reads'],
        ['meerkat console --server zk1,zk2,zk3 --write', 'znodes can be changed'],
        ['meerkat console --profile prod --also staging', 'two services, with their certificates'],
      ]),
    )
    .action((options: Options) => host.run((context) => run(context, options)));
};

async function run(context: Context, options: Options): Promise<CommandExit> {
  const limitMs = options.for === undefined ? null : parseDuration(options.for, '--for');
  const at = parseListen(options.listen);
  const prefix = parsePrefix(options.prefix);
  const [{ makeToken, startConsole }, { MEERKAT_VERSION }] = await Promise.all([
    import('@meerkat/console'),
    import('@meerkat/server/version'),
  ]);
  const clusters = withAdmin(context, options, withHistory(context, options, await context.services(options.also)));
  let running: Awaited<ReturnType<typeof startConsole>>;
  try {
    running = await startConsole(
      {
        clusters,
        version: MEERKAT_VERSION,
        isWritable: options.write === true,
        key: options.key ? makeToken() : null,
        prefix,
        hostNames: options.hostName,
      },
      at,
    );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const found = code === 'EADDRINUSE' ? 'it is in use; --listen names another one' : message;
    throw new CommandFailure(CommandExit.unreachable, `cannot listen on ${options.listen}: ${found}`);
  }
  await using _ = running;
  await print(context, running.url);
  context.note(`the console is open${options.write === true ? '' : ', and only reads'}; Ctrl-C ends it`);
  await sleep(limitMs ?? FOR_EVER_MS, undefined, { signal: context.signal }).catch(() => {});
  return CommandExit.ok;
}

/** A user who logs in presents a certificate of their own to the admin port, or that of the command line on request. */
function withAdmin(
  context: Context,
  { httpPort, https = false }: Options,
  clusters: readonly ClusterOptions[],
): readonly ClusterOptions[] {
  const [first] = clusters;
  return clusters.map((cluster) => {
    const { servers, connection } = cluster;
    const {
      cert: _cert,
      key: _key,
      passphrase: _passphrase,
      ...tls
    } = typeof connection.tls === 'function' ? connection.tls() : (connection.tls ?? {});
    const ports = cluster === first ? parsePorts(httpPort) : [ADMIN_PORT];
    const { signal } = context;
    return { ...cluster, admin: adminPorts({ servers, ports, tls: https ? tls : null, timeoutMs: ADMIN_MS, signal }) };
  });
}

/** Histories are of the service of the command line: its files are those that are named there. */
function withHistory(context: Context, { dir, logDir, admin }: SourceWords, clusters: readonly ClusterOptions[]) {
  const [first, ...others] = clusters;
  if (first === undefined || (dir === undefined && admin === undefined)) return clusters;
  const words: SourceWords = {
    ...(dir === undefined ? {} : { dir }),
    ...(logDir === undefined ? {} : { logDir }),
    ...(admin === undefined ? {} : { admin }),
  };
  const history = async (path: string) => {
    const { readPastStates } = await import('../archive/console-history.ts');
    return await readPastStates(context, words, path);
  };
  const trees = async () => (await import('../archive/console-past.ts')).pastTrees(context, words);
  const past: PastTrees = {
    span: async () => await (await trees()).span(),
    open: async (moment) => await (await trees()).open(moment),
  };
  return [{ ...first, history, past }, ...others];
}

async function print({ report }: Context, url: string): Promise<void> {
  if (report.isForPeople) {
    await report.line(`open ${url}`);
    return;
  }
  const list = await report.list([{ name: 'url', value: (one: string) => one }]);
  await list.add(url);
  await list.end();
}

/** Longer than a server waits for the end of a session. */
const ADMIN_MS = 10_000;

/** The longest that a timer takes: 24 days. */
const FOR_EVER_MS = 2 ** 31 - 1;

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(?:(.*):)?(\d{1,5})$/.exec(text) ?? [];
  const number = port === undefined ? Number.NaN : parseWholeNumber(port, '--listen');
  if (number <= 65_535) return { host: host?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1', port: number };
  throw new InvocationFailure(`--listen: expected host:port, found "${text}"`);
}

function parsePrefix(text: string): string {
  const prefix = text.replace(/\/+$/, '');
  if (prefix === '' || /^(?:\/[\w.~-]+)+$/.test(prefix)) return prefix;
  throw new InvocationFailure(`--prefix: expected a path such as /zk, found "${text}"`);
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}
