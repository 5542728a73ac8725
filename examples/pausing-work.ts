import { connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';

await using server = await TestServer.start();
await using proxy = await TcpProxy.start({ target: server.port });
await using client = await connect(proxy.connectString, { sessionTimeoutMs: 1000 });

// #region pause
/** Pauses while the connection is away, stops for good when the session may be over. */
async function work(jobs: readonly string[]): Promise<void> {
  const { lostSignal } = client;
  for (const job of jobs) {
    await client.whenConnected({ signal: lostSignal }); // waits while the connection is suspended
    await doIt(job, lostSignal);
  }
}
// #endregion

await work(['wash', 'iron', 'fold']).catch(() => console.log(`stopped, ${client.state}`));

/** One job loses the connection for a moment, another for longer than the session timeout. */
async function doIt(job: string, signal: AbortSignal): Promise<void> {
  console.log(`${job}, ${client.state}`);
  if (job === 'fold') return;
  if (job === 'iron') await proxy.refuse();
  const suspended = new Promise<void>((resolve) => {
    client.onState(({ state }) => state === 'suspended' && resolve());
  });
  await proxy.cut();
  await suspended;
  if (job === 'iron') await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

// Prints:
//   wash, connected
//   iron, connected
//   stopped, lost
