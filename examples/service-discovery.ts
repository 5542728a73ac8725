import { connect } from '@meerkat/client';
import { buildUri, roundRobin, ServiceDiscovery } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

// #region register
const server = await connect(SERVERS);
const theirs = new ServiceDiscovery(server, '/services');
const uriSpec = 'http://{address}:{port}/{name}';
const instances = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address, i) =>
  theirs.register({ name: 'search', id: `host${i + 1}`, address, port: 8080, payload: { zone: 'north' }, uriSpec }),
);
await Promise.all(instances.map((instance) => instance.whenRegistered()));
// #endregion

// #region choose
const client = await connect(SERVERS);
const discovery = new ServiceDiscovery(client, '/services');
const provider = discovery.provider<{ zone: string }>('search', {
  strategy: roundRobin(),
  filters: [({ payload }) => payload?.zone === 'north'],
  down: { errorsMax: 2, timeoutMs: 30_000 },
});
for (let call = 1; call <= 5; call++) {
  const instance = await provider.choose();
  if (instance === null) break;
  console.log(buildUri(instance));
  // An instance that fails twice is not chosen for half a minute.
  if (instance.id === 'host2') for (let i = 0; i < 2; i++) provider.noteError(instance);
}
// #endregion

await provider.close();
await Promise.all(instances.map((instance) => instance.close()));
await server.close();
await client.deleteRecursive('/services');
await client.close();

// Prints:
//   http://10.0.0.1:8080/search
//   http://10.0.0.2:8080/search
//   http://10.0.0.3:8080/search
//   http://10.0.0.1:8080/search
//   http://10.0.0.3:8080/search
