import { connect } from '@meerkat/client';
import { buildUri, roundRobin, ServiceDiscovery } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

const server = await connect(SERVERS);
// #region register
const theirs = new ServiceDiscovery(server, '/services');
const uriSpec = 'http://{address}:{port}/{name}';
const here = { name: 'search', address: '10.0.0.1', port: 8080, payload: { zone: 'north' }, uriSpec };
const first = theirs.register({ ...here, id: 'host1' });
await first.whenRegistered();
// #endregion
const others = ['10.0.0.2', '10.0.0.3'].map((address, i) => theirs.register({ ...here, id: `host${i + 2}`, address }));
await Promise.all(others.map((instance) => instance.whenRegistered()));

const client = await connect(SERVERS);
const discovery = new ServiceDiscovery(client, '/services');
// #region choose
const provider = discovery.provider<{ zone: string }>('search', {
  strategy: roundRobin(),
  filters: [({ payload }) => payload?.zone === 'north'],
  down: { errorsMax: 2, timeoutMs: 30_000 },
});
// #endregion
for (let call = 1; call <= 5; call++) {
  const instance = await provider.choose();
  if (instance === null) break;
  console.log(buildUri(instance));
  // An instance that fails twice is not chosen for half a minute.
  if (instance.id === 'host2') for (let i = 0; i < 2; i++) provider.noteError(instance);
}

await provider.close();
await Promise.all([first, ...others].map((instance) => instance.close()));
await server.close();
await client.deleteRecursive('/services');
await client.close();

// Prints:
//   http://10.0.0.1:8080/search
//   http://10.0.0.2:8080/search
//   http://10.0.0.3:8080/search
//   http://10.0.0.1:8080/search
//   http://10.0.0.3:8080/search
