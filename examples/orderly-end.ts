import { once } from 'node:events';
import { connect } from '@meerkat/client';
import { Election } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();

// #region end
const client = await connect(server.connectString);
// Without listeners Node.js ends at once, and `await using` releases nothing.
const end = new AbortController();
for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => end.abort());

const election = new Election(client, '/leader', { id: 'ann' });
await election.run(lead, { signal: end.signal, repeats: true });
// Closing ends the session: what is still held is free at once.
await client.close();
// #endregion

async function lead({ signal }: { readonly signal: AbortSignal }): Promise<void> {
  console.log('ann leads');
  // What the system does to a process that is to end.
  process.emit('SIGTERM', 'SIGTERM');
  if (!signal.aborted) await once(signal, 'abort');
  console.log('ann has put her work aside');
}

await using observer = await connect(server.connectString);
console.log(`who leads: ${(await new Election(observer, '/leader').leader())?.id ?? 'nobody'}`);

// Prints:
//   ann leads
//   ann has put her work aside
//   who leads: nobody
