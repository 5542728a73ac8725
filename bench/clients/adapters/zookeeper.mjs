// The npm package `zookeeper`, a binding of the C client. Uses its callbacks, which are cheaper than its promises.
// Data are passed as buffers, as to the others; strings would save it about 2 µs of 30.
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** @param {string} directory where the package is installed */
export async function connect(port, directory) {
  const ZooKeeper = createRequire(join(directory, 'package.json'))('zookeeper');
  const client = new ZooKeeper({
    connect: `127.0.0.1:${port}`,
    timeout: 30_000,
    debug_level: ZooKeeper.constants.ZOO_LOG_LEVEL_ERROR,
    host_order_deterministic: true,
  });
  await new Promise((resolve, reject) => client.connect((error) => (error ? reject(error) : resolve())));
  const failure = (code, text) => (code === 0 ? null : new Error(`zookeeper: ${code} ${text}`));

  return {
    get: (path, done) => client.a_get(path, false, (code, text, _stat, data) => done(failure(code, text), data)),
    set: (path, data, done) => client.a_set(path, data, -1, (code, text, stat) => done(failure(code, text), stat)),
    exists: (path, done) => client.a_exists(path, false, (code, text, stat) => done(failure(code, text), stat)),
    create: (path, data, done) => client.a_create(path, data, 0, (code, text, made) => done(failure(code, text), made)),
    delete: (path, done) => client.a_delete_(path, -1, (code, text) => done(failure(code, text))),
    children: (path, done) =>
      client.a_get_children(path, false, (code, text, children) => done(failure(code, text), children)),
    close: () => {
      client.close();
    },
  };
}
