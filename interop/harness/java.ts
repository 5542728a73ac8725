import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';

/** Debian's jar lists its dependencies, except for two parts of Netty, the servlet API and the snapshot compression. */
const APACHE_JARS = ['zookeeper', 'netty-codec', 'netty-resolver', 'servlet-api', 'snappy-java'].map(
  (jar) => `/usr/share/java/${jar}.jar`,
);
export const CLASS_PATH: string = APACHE_JARS.join(':');

/** For short-lived programs: only the C1 compiler and the serial garbage collector. */
export const SHORT_JAVA: readonly string[] = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/** Environment that makes `zkCli.sh` start Java with these flags. */
export const SHORT_ZKCLI: Readonly<Record<string, string>> = {
  ...(env as Record<string, string>),
  CLIENT_JVMFLAGS: SHORT_JAVA.join(' '),
};

/**
 * Flags that make Apache's server load its classes from a class data archive, which saves a third of the CPU time of a
 * start; empty when there is no archive, so that Java loads the jars.
 */
export const WITH_ARCHIVE: readonly string[] = flagsOfArchive();

function flagsOfArchive(): readonly string[] {
  const path = archivePath();
  return path !== null && existsSync(path) ? [`-XX:SharedArchiveFile=${path}`] : [];
}

/** The archive depends on the versions of Java and the jars. Null when Apache's server or Java is missing. */
function archivePath(): string | null {
  const java = findJava();
  if (java === null || !APACHE_JARS.every((jar) => existsSync(jar))) return null;
  const sum = createHash('sha256').update(SHORT_JAVA.join());
  for (const file of [java, ...APACHE_JARS]) sum.update(identify(file));
  return cachePath(`apache-${sum.digest('hex').slice(0, 16)}.jsa`);
}

/** The program in PATH; null if there is none. */
export function findJava(): string | null {
  const directory = (env['PATH'] ?? '').split(':').find((path) => existsSync(`${path}/java`));
  return directory === undefined ? null : `${directory}/java`;
}

/** A text that changes with the file. */
export function identify(file: string): string {
  const path = realpathSync(file);
  const { mtimeMs, size } = statSync(path);
  return `${path} ${mtimeMs} ${size}\n`;
}

/** Path of a file that is kept for later test runs. */
export function cachePath(name: string): string {
  return fileURLToPath(new URL(`../../node_modules/.cache/meerkat/${name}`, import.meta.url));
}

/** Creates the archive, unless it exists, of the classes used by a server that `run` starts with flags and stops. */
export async function makeArchive(run: (flags: readonly string[]) => Promise<void>): Promise<void> {
  const path = archivePath();
  if (path === null || existsSync(path) || spawnSync('java', ['-version']).status !== 0) return;
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}-${process.pid}`;
  await run([`-XX:ArchiveClassesAtExit=${unfinished}`]);
  // A concurrent test run may have created it too; an old Java creates none.
  if (existsSync(unfinished)) renameSync(unfinished, path);
  rmSync(unfinished, { force: true });
}
