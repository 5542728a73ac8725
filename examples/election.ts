import { connect } from '@meerkat/client';
import { Election } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
const ann = await connect(server.connectString);
await using bob = await connect(server.connectString);

const leaders = new Election(bob, '/leader').observe();
const { value: first } = await leaders.next();
console.log(`at first ${first?.id ?? 'nobody'} leads`);

async function follow(): Promise<void> {
  for await (const leader of leaders) {
    console.log(`${leader?.id ?? 'nobody'} leads`);
    if (leader?.id === 'bob') return;
  }
}
const following = follow();

// #region campaign
const election = new Election(ann, '/leader', { id: 'ann' });
const leadership = await election.campaign();
await leadership.guarded.create('/plan', 'made by ann');
// #endregion

const led = new Election(bob, '/leader', { id: 'bob' }).run(async ({ signal, guarded }) => {
  // Returns soon once `signal` is aborted; here, after one change.
  await guarded.set('/plan', 'made by bob', { version: 0 });
  return `bob has led, and was stopped: ${signal.aborted}`;
});

while ((await election.candidates()).length < 2);
await leadership.release();
await following;
console.log(await led);
await ann.close();

// Prints:
//   at first nobody leads
//   ann leads
//   bob leads
//   bob has led, and was stopped: false
