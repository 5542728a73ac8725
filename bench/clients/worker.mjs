// One client in a process of its own, told over the channel from its parent what to run:
//
//   node worker.mjs ADAPTER PORT ROOT DIRECTORY
//
// Every message { title, depth, warmUpSeconds, seconds } is answered by the figures of one slice, or by { error }.
// ROOT is the znode that is this client's own, DIRECTORY where the package is installed.
import { runClosedLoop } from './closed-loop.mjs';
import { makeWorkloads } from './workloads.mjs';

const [adapter, port, root, directory] = process.argv.slice(2);

const answer = (work) =>
  work.then(
    (figures) => process.send(figures),
    (error) => process.send({ error: error.stack }),
  );

const { connect } = await import(`./adapters/${adapter}.mjs`);
await answer(start());

async function start() {
  const client = await connect(Number(port), directory);
  const workloads = await makeWorkloads(client, root);
  process.on('message', ({ title, ...slice }) => answer(runClosedLoop(workloads.get(title), slice)));
  process.once('disconnect', () => process.exit());
  return { version: process.versions.node };
}
