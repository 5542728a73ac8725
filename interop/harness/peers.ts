import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { env } from 'node:process';
import { describe, test } from 'vitest';
import { hasSources } from '../c-client/with-tls.ts';

/**
 * The foreign servers and clients of the interop tests, and how to detect whether they are installed.
 *
 * On a developer's machine a test whose peer is missing is skipped, with what to install. In CI a missing peer is a
 * failure, so that an empty run does not pass.
 */
const PEERS = {
  apache: {
    name: "Apache ZooKeeper's server",
    packages: 'zookeeper libzookeeper-java default-jre-headless',
    isInstalled: () => existsSync('/usr/share/java/zookeeper.jar') && runs('java', ['-version']),
  },
  zkCli: {
    name: 'zkCli.sh',
    packages: 'zookeeper default-jre-headless',
    isInstalled: () => existsSync('/usr/share/zookeeper/bin/zkCli.sh') && runs('java', ['-version']),
  },
  cliMt: {
    name: 'the C shell cli_mt',
    packages: 'zookeeper-bin',
    isInstalled: () => existsSync('/usr/lib/zookeeper/bin/cli_mt'),
  },
  libzookeeperSt: {
    name: 'the single-threaded C library (through Python ctypes)',
    packages: 'libzookeeper-st2 python3',
    isInstalled: () => runs('/usr/bin/python3', ['-c', 'import ctypes; ctypes.CDLL("libzookeeper_st.so.2")']),
  },
  cClientSources: {
    name: "the C client's sources, and what builds them with TLS",
    packages: 'gcc libssl-dev; npm ci --ignore-scripts --prefix bench/clients',
    isInstalled: hasSources,
  },
  compiler: {
    name: 'a compiler of C++, for the load generator',
    packages: 'g++',
    isInstalled: () => runs('g++', ['--version']),
  },
  openssl: {
    name: 'openssl, to make certificates',
    packages: 'openssl',
    isInstalled: () => runs('openssl', ['version']),
  },
  prometheus: {
    name: 'Prometheus and promtool',
    packages: 'prometheus',
    isInstalled: () => runs('prometheus', ['--version']) && runs('promtool', ['--version']),
  },
  chromium: {
    name: 'Chromium, which shows the console',
    packages: 'chromium-headless-shell',
    isInstalled: () => existsSync('/usr/bin/chromium-headless-shell'),
  },
  tmux: {
    name: 'tmux, a terminal to type into',
    packages: 'tmux',
    isInstalled: () => runs('tmux', ['-V']),
  },
  curator: {
    name: "Curator's recipes (Java)",
    packages: 'libcurator-recipes-java libcurator-discovery-java default-jdk-headless',
    isInstalled: () => existsSync('/usr/share/java/curator-recipes.jar') && runs('javac', ['-version']),
  },
  javac: {
    name: 'a compiler of Java',
    packages: 'default-jdk-headless',
    isInstalled: () => runs('javac', ['-version']) && runs('jar', ['--version']),
  },
  bash: {
    name: 'bash, on a terminal that Python makes',
    packages: 'bash python3',
    isInstalled: () => runs('bash', ['--version']) && runs('python3', ['--version']),
  },
  zsh: {
    name: 'zsh, on a terminal that Python makes',
    packages: 'zsh python3',
    isInstalled: () => runs('zsh', ['--version']) && runs('python3', ['--version']),
  },
  fish: {
    name: 'fish, on a terminal that Python makes',
    packages: 'fish python3',
    isInstalled: () => runs('fish', ['--version']) && runs('python3', ['--version']),
  },
  kerberos: {
    name: 'a key distribution center of Kerberos, and what Python needs to log in',
    packages: 'krb5-kdc krb5-admin-server krb5-user python3-kerberos',
    isInstalled: () => existsSync('/usr/sbin/krb5kdc') && runs('/usr/bin/python3', ['-c', 'import kerberos']),
  },
  packagingTools: {
    name: 'the runtimes and checkers of deploy/tools',
    packages: 'none; npm ci --force --prefix deploy/tools',
    isInstalled: () => existsSync(new URL('../../deploy/tools/node_modules/postject', import.meta.url)),
  },
  debian: {
    name: 'lintian, and a systemd that can be booted in namespaces (by root)',
    packages: 'lintian systemd dbus adduser',
    isInstalled: () =>
      runs('lintian', ['--version']) && runs('unshare', ['--mount', '--pid', '--fork', '--net', 'true']),
  },
  qemu: {
    name: 'an emulator of arm64',
    packages: 'qemu-user-static',
    isInstalled: () => runs('qemu-aarch64-static', ['-version']),
  },
  kazooTests: {
    name: "kazoo's own tests, and what runs them",
    packages: 'python3-kazoo python3-pytest python3-mock python3-objgraph',
    isInstalled: () => runs('/usr/bin/python3', ['-c', 'import kazoo.tests, pytest, mock, objgraph']),
  },
  kazoo: {
    name: 'the Python client kazoo',
    packages: 'python3-kazoo',
    isInstalled: () => runs('/usr/bin/python3', ['-c', 'import kazoo']),
  },
} as const;

export type Peer = keyof typeof PEERS;

/** `describe` for tests that need these peers. */
export function describeWith(peers: readonly Peer[], title: string, body: () => void): void {
  const missing = peers.filter((peer) => !isInstalled(peer));
  if (missing.length === 0) {
    describe(title, body);
    return;
  }
  const what = missing.map((peer) => `${PEERS[peer].name} (Debian: ${PEERS[peer].packages})`).join(', ');
  if (isCi()) {
    describe(title, () => {
      test('finds its foreign peers in CI', () => {
        throw new Error(`not installed: ${what}`);
      });
    });
    return;
  }
  describe.skip(`${title} [skipped, not installed: ${what}]`, body);
}

const installed = new Map<Peer, boolean>();

export function isInstalled(peer: Peer): boolean {
  const known = installed.get(peer);
  if (known !== undefined) return known;
  const found = PEERS[peer].isInstalled();
  installed.set(peer, found);
  return found;
}

export function isCi(): boolean {
  const { CI } = env;
  return CI === 'true';
}

function runs(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}
