import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { type ServerKind, ServerProcess } from '../harness/server-process.ts';
import { StateLog } from './state-log.ts';

/** A server behind a proxy, a client that uses the proxy, and an observer that bypasses it. */
export class FaultSite implements AsyncDisposable {
  readonly server: TestServer | ServerProcess;
  readonly proxy: TcpProxy;
  readonly client: Client;
  /** Bypasses the proxy. */
  readonly observer: Client;
  readonly states: StateLog;

  static async start(kind: ServerKind, options: Omit<ConnectOptions, 'servers'> = {}): Promise<FaultSite> {
    const server =
      kind === 'meerkat'
        ? await TestServer.start({ tickTimeMs: TICK_MS })
        : await ServerProcess.start(kind, { config: { tickTime: TICK_MS, maxSessionTimeout: 60_000 } });
    const proxy = await TcpProxy.start({ target: server.port });
    const client = await connect(proxy.connectString, { backOff: QUICK, ...options });
    const observer = await connect(`127.0.0.1:${server.port}`);
    return new FaultSite(server, proxy, client, observer);
  }

  private constructor(server: TestServer | ServerProcess, proxy: TcpProxy, client: Client, observer: Client) {
    this.server = server;
    this.proxy = proxy;
    this.client = client;
    this.observer = observer;
    this.states = new StateLog(client);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
    await this.observer.close();
    await this.proxy.stop();
    await this.server[Symbol.asyncDispose]();
  }
}

/** Sessions expire at most one tick after their timeout, which is at least two ticks. */
const TICK_MS = 100;

/** Backoff of a client that should reconnect at once. Milliseconds. */
export const QUICK: { readonly minMs: number; readonly maxMs: number } = { minMs: 1, maxMs: 5 };
