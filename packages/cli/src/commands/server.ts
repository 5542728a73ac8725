import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  ConfigurationError,
  ExitCode,
  isSingleFile,
  MEERKAT_VERSION,
  type ReadConfiguration,
  type RunningServer,
  readJvmFlags,
  readZooCfg,
  runServer,
  ZOOKEEPER_VERSION,
} from '@meerkat/server/run';

/**
 * `meerkat server`: one server, in the foreground.
 *
 * @param words nothing, a zoo.cfg, or Apache's `<port> <dataDir> [tickTime] [maxClientCnxns]`
 */
export async function serve(words: readonly string[]): Promise<number> {
  let configuration: ReadConfiguration;
  try {
    configuration = readConfiguration(words);
  } catch (error) {
    if (!(error instanceof ConfigurationError || error instanceof InvocationError)) throw error;
    console.error(error.message);
    return ExitCode.invocation;
  }
  return runServer(configuration, (server) => greet(server, configuration));
}

/** The command line asks for something that cannot be done. */
class InvocationError extends Error {}

function readConfiguration(words: readonly string[]): ReadConfiguration {
  const [first, second, tickTime, maxClientCnxns] = words;
  if (words.length > 4) throw new InvocationError(`${USAGE}; found ${words.length} arguments`);
  if (first === undefined)
    return readWords({ clientPort: '2181', clientPortAddress: '127.0.0.1', dataDir: 'meerkat-data' });
  if (second === undefined) return readFile(first);
  return readWords({
    clientPort: first,
    dataDir: second,
    ...(tickTime === undefined ? {} : { tickTime }),
    ...(maxClientCnxns === undefined ? {} : { maxClientCnxns }),
  });
}

const USAGE = 'expected "meerkat server [zoo.cfg]" or "meerkat server <port> <dataDir> [tickTime] [maxClientCnxns]"';

function readFile(file: string): ReadConfiguration {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const found = code === 'ENOENT' ? `there is no file ${resolve(file)}` : message;
    throw new InvocationError(`cannot read the configuration ${file}: ${found}; ${USAGE}`);
  }
  return readZooCfg({ text, file, workingDirectory: process.cwd(), systemProperties: readJvmFlags(process.env) });
}

/** Values from the command line go the way of those from a file, so that they are checked alike. */
function readWords(values: Readonly<Record<string, string>>): ReadConfiguration {
  const text = Object.entries(values)
    .map(([key, value]) => `${key}=${value.replaceAll('\\', '\\\\')}`)
    .join('\n');
  const systemProperties = readJvmFlags(process.env);
  return readZooCfg({ text, file: 'command line', isFile: false, workingDirectory: process.cwd(), systemProperties });
}

/** Says where the server listens, where its data is, and what to try; on standard output. */
function greet(server: RunningServer, { core, server: options }: ReadConfiguration): void {
  const { host, port } = server.address;
  // One cannot connect to the wildcard address.
  const target = host === '::' || host === '0.0.0.0' ? '127.0.0.1' : host;
  const shownHost = host.includes(':') ? `[${host}]` : host;
  const logs = options.dataLogDirectory === options.dataDirectory ? '' : `, log in ${options.dataLogDirectory}`;
  const shownTarget = target.includes(':') ? `[${target}]` : target;
  const serves =
    core.ensemble === null
      ? 'serves clients on'
      : `is server ${core.serverId} of an ensemble of ${core.ensemble.membership.members.length}; whenever it has a leader, it serves clients on`;
  process.stdout.write(`Meerkat ${MEERKAT_VERSION} (ZooKeeper ${ZOOKEEPER_VERSION}) ${serves} ${shownHost}:${port}
data in ${options.dataDirectory}${logs}
try     echo srvr | nc ${target} ${port}
${isSingleFile() ? '' : `        node -e "require('net').connect(${port},'${target}').end('srvr').pipe(process.stdout)"\n`}        zkCli.sh -server ${shownTarget}:${port} ls /
`);
}
