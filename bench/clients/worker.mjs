// One client in its own process, controlled by its parent over the IPC channel:
//
//   node worker.mjs ADAPTER PORT ROOT DIRECTORY
//
// Each message { title, depth, warmUpSeconds, seconds } is answered with the figures of one slice, or with { error }.
// ROOT is this client's own znode, DIRECTORY is where the package is installed.
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
