import { connect } from '@meerkat/client';
import { ReadWriteLock } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using client = await connect(server.connectString);

// #region code
const catalogue = new ReadWriteLock(client, '/locks/catalogue');
// #endregion
{
  await using one = await catalogue.acquireRead();
  await using other = await catalogue.acquireRead();
  console.log(`two readers: ${one.isHeld && other.isHeld}`);
  console.log(`a writer beside them: ${await catalogue.tryAcquireWrite()}`);
}
// #region code
const writing = await catalogue.acquireWrite({ timeoutMs: 10_000 });
// From here on others may read, and no writer got in between.
await using reading = await catalogue.downgrade(writing);
// #endregion
console.log(`it is a lock for reading now: ${reading.isHeld}; for writing: ${writing.isHeld}`);

// Prints:
//   two readers: true
//   a writer beside them: null
//   it is a lock for reading now: true; for writing: false
