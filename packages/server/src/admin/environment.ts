import { arch, homedir, hostname, release, type as systemName, tmpdir, userInfo } from 'node:os';
import { dirname } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { FULL_VERSION } from '../version.ts';

/**
 * The lines of `envi`, in ZooKeeper's order.
 *
 * Its `java.*` keys tell of Node.js instead, or `<NA>` where there is nothing of the kind; memory is that of the heap.
 */
export function listEnvironment(): readonly (readonly [key: string, value: string])[] {
  const heap = getHeapStatistics();
  return [
    ['zookeeper.version', FULL_VERSION],
    ['host.name', hostname()],
    ['java.version', process.versions.node],
    ['java.vendor', 'Node.js'],
    ['java.home', dirname(process.execPath)],
    ['java.class.path', '<NA>'],
    ['java.library.path', '<NA>'],
    ['java.io.tmpdir', tmpdir()],
    ['java.compiler', '<NA>'],
    ['os.name', systemName()],
    ['os.arch', JAVA_ARCHITECTURES[arch()] ?? arch()],
    ['os.version', release()],
    ['user.name', readUserName()],
    ['user.home', homedir()],
    ['user.dir', process.cwd()],
    ['os.memory.free', formatMegabytes(heap.total_heap_size - heap.used_heap_size)],
    ['os.memory.max', formatMegabytes(heap.heap_size_limit)],
    ['os.memory.total', formatMegabytes(heap.total_heap_size)],
  ];
}

const JAVA_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'aarch64', ia32: 'x86' };

function formatMegabytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)}MB`;
}

function readUserName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run with a user id that no name belongs to.
    return '<NA>';
  }
}
