// The other libraries: those of the Debian packages python3-kazoo and libcurator-recipes-java, if installed.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../processes.mjs';

const JARS = [
  ...['curator-recipes', 'curator-framework', 'curator-client', 'zookeeper', 'zookeeper-jute'],
  ...['guava', 'slf4j-api', 'slf4j-nop'],
].map((jar) => `/usr/share/java/${jar}.jar`);

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

/**
 * @param directory for compiled classes
 * @returns the commands of the workers, by library name; ours last
 */
export async function findLibraries(directory, progress) {
  const kazoo = await kazooCommand(progress);
  const curator = await curatorCommand(directory, progress);
  return {
    ...(kazoo === null ? {} : { kazoo }),
    ...(curator === null ? {} : { Curator: curator }),
    meerkat: [process.execPath, pathOf('meerkat.mjs')],
  };
}

async function kazooCommand(progress) {
  const python = '/usr/bin/python3';
  try {
    await run(python, ['-c', 'import kazoo.client']);
    return [python, pathOf('kazoo_worker.py')];
  } catch {
    progress('no kazoo: apt-get install python3-kazoo');
    return null;
  }
}

async function curatorCommand(directory, progress) {
  const missing = JARS.filter((jar) => !existsSync(jar));
  const classes = join(directory, 'classes');
  try {
    if (missing.length > 0) throw new Error(`${missing.join(', ')} missing`);
    await run('javac', ['-d', classes, '-cp', JARS.join(':'), pathOf('CuratorWorker.java')]);
  } catch (error) {
    progress(`no Curator: apt-get install libcurator-recipes-java and a JDK; ${error.message}`);
    return null;
  }
  return ['java', '-Xmx2g', '-Xss512k', '-cp', [classes, ...JARS].join(':'), 'CuratorWorker'];
}
