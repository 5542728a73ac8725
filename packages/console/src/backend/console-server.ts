import type { AddressInfo } from 'node:net';
import { makeConsoleApp } from './console-app.ts';
import type { ConsoleOptions } from './options.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** A running console. */
export interface RunningConsole extends AsyncDisposable {
  /** Its URL, with the key if there is one: for a browser. */
  readonly url: string;
  readonly port: number;
  /** Ends all sessions. */
  close(): Promise<void>;
}

/** Starts a console. @throws an error with the system's code when it cannot listen there */
export async function startConsole(options: ConsoleOptions, { host, port }: ListenOptions): Promise<RunningConsole> {
  const app = makeConsoleApp(options);
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    throw error;
  }
  const at = app.server.address() as AddressInfo;
  // For a browser on this machine: a server on all interfaces is here, too.
  const shownHost = ['0.0.0.0', '::'].includes(at.address)
    ? 'localhost'
    : at.family === 'IPv6'
      ? `[${at.address}]`
      : at.address;
  const key = options.key ?? null;
  return {
    url: `http://${shownHost}:${at.port}${options.prefix ?? ''}/${key === null ? '' : `#key=${key}`}`,
    port: at.port,
    close: () => app.close(),
    [Symbol.asyncDispose]: () => app.close(),
  };
}
