import { connect } from '@meerkat/client';
import { SetPartitioner } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';
const QUEUES = ['a', 'b', 'c', 'd', 'e'];

const first = await connect(SERVERS);
const second = await connect(SERVERS);
let other: SetPartitioner | null = null;

// #region shares
const partitioner = new SetPartitioner(first, '/owners', QUEUES, { identifier: 'worker-1', quietMs: 200 });
for await (const share of partitioner) {
  console.log(`worker-1 has ${share.items.join(' ')}`);
  if (share.items.length < QUEUES.length) break;
  // Another member joins: our share is recalled, and the set divided again.
  other = new SetPartitioner(second, '/owners', QUEUES, { identifier: 'worker-2', quietMs: 200 });
  void serve(other);
  await aborted(share.recall);
} // The next share is asked for, and so this one is released.
// #endregion

async function serve(shares: SetPartitioner): Promise<void> {
  for await (const share of shares) await aborted(share.recall);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

await other?.close();
await second.close();
await first.deleteRecursive('/owners');
await first.close();

// Prints:
//   worker-1 has a b c d e
//   worker-1 has a c e
