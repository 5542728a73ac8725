import { expect, test } from 'vitest';
import { TicketSource } from './ticket-source.ts';

const CONFIG = new URL('../../package.json', import.meta.url).pathname;
const KEYTAB = '/no/such/keytab';

/** Why it has no ticket. */
const refusalOf = (options: { cache?: string; keytab?: string }, env: NodeJS.ProcessEnv): Promise<string> =>
  new TicketSource({ config: CONFIG, ...options }, env).get('zookeeper/host').then(
    () => 'a ticket',
    ({ message }: Error) => message,
  );

test('where the cache is of a type that is not read, as KCM, the keytab is used that is there', async () => {
  for (const cache of ['KCM:', 'KCM:0:1', 'KEYRING:persistent:0', 'DIR:/run/tickets', 'API:']) {
    expect(await refusalOf({}, { KRB5CCNAME: cache })).toMatch(/only FILE is read: .*KRB5_CLIENT_KTNAME/);
    expect(await refusalOf({}, { KRB5CCNAME: cache, KRB5_CLIENT_KTNAME: `FILE:${KEYTAB}` })).toMatch(
      /^the keytab \/no\/such\/keytab cannot be read: ENOENT/,
    );
    expect(await refusalOf({ keytab: KEYTAB }, { KRB5CCNAME: cache })).toMatch(/^the keytab \/no\/such\/keytab/);
    // One that the program names itself is meant.
    expect(await refusalOf({ cache }, { KRB5_CLIENT_KTNAME: KEYTAB })).toMatch(/only FILE is read/);
  }
});
