import { connect, json, type StandardSchema } from '@meerkat/client';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

interface Config {
  readonly rate: number;
}

/** Usually created by a library: zod, valibot, arktype and others implement Standard Schema. */
const schema: StandardSchema<Config> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate(value) {
      const rate = (value as { readonly rate?: unknown } | null)?.rate;
      if (typeof rate !== 'number') return { issues: [{ message: 'expected a number', path: ['rate'] }] };
      return { value: { rate } };
    },
  },
};

await using client = await connect(SERVERS);
const config = json(schema);
await client.create('/config', { rate: 10 }, { codec: config });

/** Changes by another client, one after each observed value. */
const steps = [
  () => client.set('/config', { rate: 20 }, { codec: config }),
  () => client.set('/config', '{ "rate": "fast" }'),
  () => client.delete('/config'),
];

// #region observe
for await (const { exists, data, error } of client.observe('/config', config)) {
  if (error !== null) console.log(`unusable, the old one stays: ${error.message}`);
  else if (exists) console.log(`rate ${data.rate}`);
  else console.log('no configuration');
  // #endregion
  const step = steps.shift();
  if (step === undefined) break;
  await step();
  // #region observe
}
// #endregion

// Prints:
//   rate 10
//   rate 20
//   unusable, the old one stays: observe /config: … rate: expected a number (DECODEFAILED)
//   no configuration
