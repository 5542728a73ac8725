import { connect, json, text } from '@meerkat/client';
import { DelayQueue, PriorityQueue, Queue } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const client = await connect(SERVERS);

interface Job {
  readonly image: string;
}

// #region put
const jobs = new Queue<Job>(client, '/jobs', { codec: json<Job>(), itemsMax: 1000 });
await jobs.put({ image: 'cat.png' });
await jobs.putAll([{ image: 'dog.png' }, { image: 'owl.png' }]); // both or none
// #endregion

// A worker takes a job, and dies.
const mortal = await connect(SERVERS);
const lost = await new Queue<Job>(mortal, '/jobs', { codec: json<Job>() }).take();
console.log(`a worker has ${lost.value.image}, and dies`);
await mortal.close();

// #region loop
for await (const item of jobs) {
  // Pass `item.signal` on to slow work: it aborts when the item may go to another consumer.
  console.log(`resizing ${item.value.image}`);
  await item.done();
  if ((await jobs.size()) === 0) break;
}
// #endregion

await client.create('/thumbnails');
await jobs.put({ image: 'fox.png' });
{
  await using item = await jobs.take({ timeoutMs: 10_000 });
  // The service refuses this write if the lease is over: a worker that was paused does no harm.
  await item.guarded?.create('/thumbnails/fox', 'small');
  console.log(`the first to have fox.png: token ${item.token > 0n}`);
  // Without `done` the item is released at the end of this scope.
}
console.log(`still there: ${await jobs.size()}`);

const mail = new PriorityQueue<string>(client, '/mail', { codec: text });
await mail.put('newsletter', { priority: 10 });
await mail.put('password reset', { priority: -10 });
console.log((await mail.take()).value);

const reminders = new DelayQueue<string>(client, '/reminders', { codec: text });
await reminders.put('buy tea', { delayMs: 3_600_000 });
await reminders.put('tea is ready', { delayMs: 50 });
console.log((await reminders.take()).value);
console.log(await reminders.tryTake());

const own = /^\/(jobs|mail|reminders|thumbnails)/;
const { children } = await client.children('/');
for (const path of children.map((name) => `/${name}`)) if (own.test(path)) await client.deleteRecursive(path);
await client.close();

// Prints:
//   a worker has cat.png, and dies
//   resizing cat.png
//   resizing dog.png
//   resizing owl.png
//   the first to have fox.png: token true
//   still there: 1
//   password reset
//   tea is ready
//   null
