import { type Client, connect, type TransportEvents, type TransportStream } from '@meerkat/client';

/** A service with a past state: accessible without a network, only to its owner. */
export interface PastService {
  connect(events: TransportEvents): TransportStream;
  stop(): Promise<void>;
}

/** A client of such a service. */
export interface OpenPast {
  readonly client: Client;
  /** Stops the service, too. */
  close(): Promise<void>;
}

export interface PastOptions {
  readonly chroot?: string;
  readonly signal?: AbortSignal;
  /** Of the copy of the client whose errors the caller knows: a bundle has its own. Default: the console's. */
  readonly connect?: typeof connect;
}

export async function openPastService(service: PastService, options: PastOptions = {}): Promise<OpenPast> {
  const { connect: open = connect, ...rest } = options;
  try {
    const client = await open({
      servers: 'past:2181',
      sessionTimeoutMs: SESSION_MS,
      transport: {
        resolve: () => Promise.resolve(['127.0.0.1']),
        connect: (_target, events) => service.connect(events),
        probe: () => Promise.reject(new Error('the past answers no words')),
      },
      ...rest,
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

/** Long enough for a process that is paused, or has much to write. */
const SESSION_MS = 3_600_000;
