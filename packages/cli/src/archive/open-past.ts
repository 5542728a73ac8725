import { type Client, connect, type Transport } from '@meerkat/client';
import { PastService, type Rebuilt } from '@meerkat/server/archive';

/** A client of a service in this process that is as a service was. */
export interface OpenPast {
  readonly client: Client;
  close(): Promise<void>;
}

/** Takes the database over: it is of no use to anybody else afterwards. */
export async function openPast(rebuilt: Rebuilt, options: { chroot?: string; signal: AbortSignal }): Promise<OpenPast> {
  const service = await PastService.start(rebuilt);
  try {
    const client = await connect({
      servers: 'past:2181',
      sessionTimeoutMs: SESSION_MS,
      transport: transportTo(service),
      ...options,
    });
    return {
      client,
      async close() {
        await client.close().catch(() => {});
        await service.stop();
      },
    };
  } catch (error) {
    await service.stop();
    throw error;
  }
}

/** Long enough for a process that is stopped, or has much to write. */
const SESSION_MS = 3_600_000;

function transportTo(service: PastService): Transport {
  return {
    resolve: () => Promise.resolve(['127.0.0.1']),
    connect: (_target, events) => service.connect(events),
    probe: () => Promise.reject(new Error('the past answers no words')),
  };
}
