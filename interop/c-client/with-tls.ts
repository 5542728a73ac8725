import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cachePath } from '../harness/java.ts';

/**
 * Apache's C client with TLS, which Debian's build lacks. Its sources (3.8.0) are taken from the npm package
 * `zookeeper`, which the benchmark uses; none of the package's code is run.
 */
export interface CClient {
  /** The shell of the threaded library. */
  readonly shell: string;
  /** The single-threaded library. */
  readonly library: string;
}

/** The client and its TLS files. */
export interface CClientTls extends CClient {
  /** PEM files in the format of `zookeeper_init_ssl`: `authority,certificate,key,password`. */
  readonly files: string;
}

const SOURCES = fileURLToPath(
  new URL('../../bench/clients/node_modules/zookeeper/deps/zookeeper-client-c.tar.gz', import.meta.url),
);

export function hasSources(): boolean {
  const compiler = ['-include', 'openssl/ssl.h', '-xc', '-fsyntax-only', '/dev/null'];
  return existsSync(SOURCES) && spawnSync('cc', compiler, { stdio: 'ignore' }).status === 0;
}

/** Builds it, or reuses the build of an earlier run. */
export async function buildCClient(): Promise<CClient> {
  const sum = createHash('sha256')
    .update(readFileSync(SOURCES))
    .update(JSON.stringify([CONFIG, FLAGS, FILES]));
  const directory = cachePath(`c-client-${sum.digest('hex').slice(0, 16)}`);
  const built: CClient = { shell: join(directory, 'cli_mt'), library: join(directory, 'libzookeeper_st.so') };
  if (existsSync(directory)) return built;
  const unfinished = `${directory}-${process.pid}`;
  try {
    const sources = join(unfinished, 'sources');
    mkdirSync(sources, { recursive: true });
    await run('tar', ['-xzf', SOURCES, '-C', sources, '--strip-components=1', '--warning=none']);
    // Saves a second of `configure`.
    writeFileSync(join(sources, 'include/config.h'), CONFIG);
    const compile = (target: string, ...more: readonly string[]): Promise<unknown> =>
      run('cc', [...FLAGS, ...FILES, ...more, '-o', join(unfinished, target), ...LIBRARIES], { cwd: sources });
    await compile('cli_mt', '-DTHREADED', 'src/mt_adaptor.c', 'src/cli.c');
    await compile('libzookeeper_st.so', '-shared', '-fPIC', 'src/st_adaptor.c');
    rmSync(sources, { recursive: true });
    // A concurrent test run may have built it too.
    if (!existsSync(directory)) renameSync(unfinished, directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return built;
}

const run = promisify(execFile);
const HEADERS = ['ARPA_INET_H', 'NETDB_H', 'NETINET_IN_H', 'SYS_SOCKET_H', 'SYS_TIME_H', 'SYS_UTSNAME_H', 'UNISTD_H'];
const CONFIG = [...HEADERS, 'GETPWUID_R', 'POLL']
  .map((name) => `#define HAVE_${name} 1\n`)
  .join('')
  .concat('#define PACKAGE_STRING "zookeeper C client 3.8.0"\n');
const FLAGS = ['-w', '-D_GNU_SOURCE', '-DHAVE_OPENSSL_H', '-DZOO_IPV6_ENABLED', '-Iinclude', '-Igenerated', '-Isrc'];
const FILES = [
  'src/zookeeper.c',
  'src/recordio.c',
  'generated/zookeeper.jute.c',
  'src/zk_log.c',
  'src/zk_hashtable.c',
  'src/addrvec.c',
  'src/hashtable/hashtable.c',
  'src/hashtable/hashtable_itr.c',
];
const LIBRARIES = ['-lssl', '-lcrypto', '-lm', '-lpthread'];
