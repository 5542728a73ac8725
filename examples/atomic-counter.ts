import { connect, text } from '@meerkat/client';
import { AtomicLong, AtomicValue, Mutex, SharedValue } from '@meerkat/recipes';

const SERVERS = process.env['ZOOKEEPER'] ?? '127.0.0.1:2181';

await using client = await connect(SERVERS);

{
  // #region counter
  await using hits = new AtomicLong(client, '/stats/hits', { lock: new Mutex(client, '/stats/lock') });
  await Promise.all(Array.from({ length: 20 }, () => hits.increment()));
  const { before, after } = await hits.add(100);
  console.log(`from ${before} to ${after}`);
  // #endregion

  // #region value
  await using best = new AtomicValue(client, '/stats/best', { codec: text, initial: '' });
  const { after: winner } = await best.update((current) => (current < 'ann' ? 'ann' : undefined));
  console.log(winner, await best.compareAndSet('bob', 'carl'));
  // #endregion
}

// #region shared
const mode = new SharedValue(client, '/stats/mode', { seed: 'normal', codec: text });
const seen = await mode.get();
console.log(seen.value, await mode.trySet(seen, 'maintenance'), await mode.trySet(seen, 'closed'));
// #endregion

await client.deleteRecursive('/stats');

// Prints:
//   from 20 to 120
//   ann false
//   normal true false
