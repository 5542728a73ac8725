import { type Client, NoNodeError, text } from '@meerkat/client';
import { Nemesis, planFaults, VirtualWorld } from '@meerkat/simulator';

// #region code
/** Takes a job off the queue and says which; null when there is none, or another worker was faster. */
type Take = (client: Client, worker: string) => Promise<string | null>;

/** The worker that deletes a job's znode does the job. But what if the znode was deleted, and the answer was lost? */
const takeByDeleting: Take = async (client) => {
  const { children } = await client.children('/jobs');
  const [first] = children.toSorted();
  if (first === undefined) return null;
  const isTaken = await client.delete(`/jobs/${first}`).then(
    () => true,
    () => false,
  );
  return isTaken ? first : null;
};

/** The job moves to the worker's own list in one transaction, and that list says what the worker has to do. */
const takeByMoving: Take = async (client, worker) => {
  const { children } = await client.children('/jobs');
  const [first] = children.toSorted();
  if (first === undefined) return null;
  const move = client.transaction().delete(`/jobs/${first}`).create(`/taken/${first}`, worker);
  await move.commit().catch(() => {});
  // Whether the answer was lost or not, the znode says who has the job, if any.
  return (await untilAnswered(client, () => ownerOf(client, first))) === worker ? first : null;
};

async function ownerOf(client: Client, job: string): Promise<string> {
  try {
    const { data } = await client.get(`/taken/${job}`, { read: 'linearizable', codec: text });
    return data;
  } catch (error) {
    if (error instanceof NoNodeError) return 'nobody';
    throw error;
  }
}
// #endregion

// #region world
const JOBS = 12;
const NAMES = ['worker1', 'worker2'];

/** One world: two workers empty the queue while an ensemble of three servers goes through what the seed has in store. */
async function countJobsDone(seed: number, take: Take): Promise<number> {
  const world = new VirtualWorld({ seed });
  const ensemble = world.startEnsemble({ servers: 3 });
  return world.run(async () => {
    const options = { servers: ensemble.connectString, sessionTimeoutMs: 30_000, connectTimeoutMs: 60_000 };
    const workers = await Promise.all(NAMES.map((name) => world.connect(name, options)));
    for (const path of ['/jobs', '/taken']) await workers[0]!.ensurePath(path);
    for (let i = 10; i < 10 + JOBS; i++) await workers[0]!.create(`/jobs/${i}`);

    const nemesis = new Nemesis(world, ensemble);
    const hosts = ensemble.servers.map(({ host }) => host);
    const kinds = ['crash', 'power', 'partition', 'break'] as const;
    const plan = { kinds, durationMs: 20_000, servers: hosts, clients: NAMES, pauseMs: 50 };
    nemesis.unleash(planFaults(world.random.fork('faults'), plan));

    const done = new Set<string>();
    const working = workers.map(async (worker, i) => {
      while ((await left(worker)) > 0) {
        const job = await take(worker, NAMES[i]!).catch(() => null);
        if (job !== null) done.add(job);
        await world.sleep(300); // virtual milliseconds: this takes no time
      }
    });
    await Promise.all(working);
    nemesis.heal();
    return done.size;
  });
}
// #endregion

/** Jobs that are still on the queue. */
async function left(client: Client): Promise<number> {
  const { children } = await untilAnswered(client, () => client.children('/jobs', { read: 'linearizable' }));
  return children.length;
}

/** Reads may be repeated as often as it takes. */
async function untilAnswered<T>(client: Client, read: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await read().catch(() => null);
    if (answer !== null) return answer;
    await client.whenConnected();
  }
}

// #region seeds
const ways = [
  { take: takeByDeleting, worlds: 15 },
  { take: takeByMoving, worlds: 5 },
];
for (const { take, worlds } of ways) {
  let lostIn = 0;
  for (let seed = 1; seed <= worlds && lostIn === 0; seed++) {
    if ((await countJobsDone(seed, take)) < JOBS) lostIn = seed;
  }
  const found = lostIn === 0 ? `every job was done, in ${worlds} worlds` : 'there is a world that loses a job';
  console.log(`${take.name}: ${found}`);
}
// #endregion

// Prints:
//   takeByDeleting: there is a world that loses a job
//   takeByMoving: every job was done, in 5 worlds
