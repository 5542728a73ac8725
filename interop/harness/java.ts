import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';

/** Debian's jar names what it needs, but for two parts of Netty, the servlet API of the admin port, and what packs snapshots. */
const APACHE_JARS = ['zookeeper', 'netty-codec', 'netty-resolver', 'servlet-api', 'snappy-java'].map(
  (jar) => `/usr/share/java/${jar}.jar`,
);
export const CLASS_PATH: string = APACHE_JARS.join(':');

/** For programs that run shortly: the first compiler only, and one thread that collects garbage. */
export const SHORT_JAVA: readonly string[] = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/** The environment in which `zkCli.sh` starts Java with these flags. */
export const SHORT_ZKCLI: Readonly<Record<string, string>> = {
  ...(env as Record<string, string>),
  CLIENT_JVMFLAGS: SHORT_JAVA.join(' '),
};

/**
 * Flags of Apache's server that take its classes from an archive, which saves a third of the processor time of a start; none where
 * there is no archive, and Java then loads the jars.
 */
export const WITH_ARCHIVE: readonly string[] = flagsOfArchive();

function flagsOfArchive(): readonly string[] {
  const path = archivePath();
  return path !== null && existsSync(path) ? [`-XX:SharedArchiveFile=${path}`] : [];
}

/** Another Java and other jars have another archive. Null where Apache's server or Java is missing. */
function archivePath(): string | null {
  const java = findJava();
  if (java === null || !APACHE_JARS.every((jar) => existsSync(jar))) return null;
  const sum = createHash('sha256').update(SHORT_JAVA.join());
  for (const file of [java, ...APACHE_JARS]) sum.update(identify(file));
  return cachePath(`apache-${sum.digest('hex').slice(0, 16)}.jsa`);
}

/** The program, in the directories of PATH; null where there is none. */
export function findJava(): string | null {
  const directory = (env['PATH'] ?? '').split(':').find((path) => existsSync(`${path}/java`));
  return directory === undefined ? null : `${directory}/java`;
}

/** A text that is another one when the file is. */
export function identify(file: string): string {
  const path = realpathSync(file);
  const { mtimeMs, size } = statSync(path);
  return `${path} ${mtimeMs} ${size}\n`;
}

/** Where something lies that one run of the tests makes for the next ones, too. */
export function cachePath(name: string): string {
  return fileURLToPath(new URL(`../../node_modules/.cache/meerkat/${name}`, import.meta.url));
}

/** Makes the archive, if it is not there, of the classes that a server uses while `run` starts one with these flags and stops it. */
export async function makeArchive(run: (flags: readonly string[]) => Promise<void>): Promise<void> {
  const path = archivePath();
  if (path === null || existsSync(path) || spawnSync('java', ['-version']).status !== 0) return;
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}-${process.pid}`;
  await run([`-XX:ArchiveClassesAtExit=${unfinished}`]);
  // A test run beside this one may have made it, too; an old Java makes none.
  if (existsSync(unfinished)) renameSync(unfinished, path);
  rmSync(unfinished, { force: true });
}
