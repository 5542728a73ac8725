import { connect, json, type StandardSchema } from '@meerkat/client';
import { Configuration } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

interface Settings {
  readonly host: string;
  readonly port: number;
}

/** Like a schema of zod, valibot or arktype. */
const settingsSchema: StandardSchema<Settings> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate(value) {
      const { host, port } = value as Partial<Settings>;
      if (typeof host !== 'string' || typeof port !== 'number')
        return { issues: [{ message: 'host and port, please' }] };
      return { value: { host, port } };
    },
  },
};

await using client = await connect(SERVERS);

// #region update
const settings = new Configuration(client, '/app/settings', { codec: json(settingsSchema), keep: 5 });
await settings.set({ host: 'db1', port: 5432 });
await settings.update((current) => (current === null ? undefined : { ...current, host: 'db2' }));
console.log(await settings.get());
// #endregion

await using observation = settings.observe();
await observation.ready;
const changed = observation.changed();
// Another program writes invalid settings: observers are notified, and roll back.
await client.set('/app/settings', '{"host":"db3"}');
console.log((await changed).error?.message);
const back = await settings.rollback({ to: 1 });
console.log(back, await settings.history());

await observation.close();
await client.deleteRecursive('/app');

// Prints:
//   { value: { host: 'db2', port: 5432 }, version: 1 }
//   …host and port, please…
//   { value: { host: 'db2', port: 5432 }, version: 3 } [ 2, 1, 0 ]
