// Our client with its promises: their cost is part of the measurement.
import { connect as connectClient } from '../../../packages/client/dist/index.js';

export async function connect(port) {
  const client = await connectClient(`127.0.0.1:${port}`, { sessionTimeoutMs: 30_000 });
  return {
    get: (path, done) => {
      client.get(path).then(({ data }) => done(null, data), done);
    },
    set: (path, data, done) => {
      client.set(path, data).then((stat) => done(null, stat), done);
    },
    exists: (path, done) => {
      client.exists(path).then((stat) => done(null, stat), done);
    },
    create: (path, data, done) => {
      client.create(path, data).then((created) => done(null, created.path), done);
    },
    delete: (path, done) => {
      client.delete(path).then(() => done(null), done);
    },
    children: (path, done) => {
      client.children(path).then(({ children }) => done(null, children), done);
    },
    close: () => client.close(),
  };
}
