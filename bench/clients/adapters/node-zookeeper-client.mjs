// The npm package `node-zookeeper-client`: callbacks, in JavaScript.
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** @param {string} directory where the package is installed */
export async function connect(port, directory) {
  const { createClient } = createRequire(join(directory, 'package.json'))('node-zookeeper-client');
  const client = createClient(`127.0.0.1:${port}`, { sessionTimeout: 30_000 });
  const connected = new Promise((resolve) => client.once('connected', resolve));
  client.connect();
  await connected;

  return {
    get: (path, done) => client.getData(path, done),
    set: (path, data, done) => client.setData(path, data, done),
    exists: (path, done) => client.exists(path, done),
    create: (path, data, done) => client.create(path, data, done),
    delete: (path, done) => client.remove(path, done),
    children: (path, done) => client.getChildren(path, done),
    close: () => client.close(),
  };
}
