import { connect } from '@meerkat/client';
import { Semaphore } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using client = await connect(server.connectString);

// #region code
const reports = new Semaphore(client, '/limits/reports', { leasesMax: 2 });
{
  await using one = await reports.acquire({ timeoutMs: 10_000 });
  // #endregion
  await using other = await reports.acquire();
  console.log(`leases: ${[one, other].filter(({ isHeld }) => isHeld).length}`);
  console.log(`a third one: ${await reports.tryAcquire()}`);
  // #region code
}
// #endregion
console.log(`held in the end: ${(await reports.holders()).length}`);

// Prints:
//   leases: 2
//   a third one: null
//   held in the end: 0
