import { readdirSync } from 'node:fs';
import { TestServer } from '@meerkat/testing';

/*
 * Runs programs in this directory, by name:
 *
 *     npm run example -- first-steps
 *
 * The variable ZOOKEEPER is the connect string, such as 127.0.0.1:2181. Without it a server is started in this process.
 */
const known = readdirSync(import.meta.dirname)
  .filter((name) => /^(?!run\.|tls\.|sasl\.).*(?<!\.test)\.[jt]s$/.test(name))
  .map((name) => name.replace(/\.[jt]s$/, ''));
const names = process.argv.slice(2);

if (names.length === 0 || !names.every((name) => known.includes(name))) {
  console.error(`npm run example -- NAME …, where each NAME is one of: ${known.join(' ')}`);
  process.exitCode = 1;
} else if (process.env['ZOOKEEPER'] !== undefined) {
  await run();
} else {
  await using server = await TestServer.start();
  process.env['ZOOKEEPER'] = server.connectString;
  await run();
}

async function run(): Promise<void> {
  for (const name of names) await import(`./${name}.js`);
}
