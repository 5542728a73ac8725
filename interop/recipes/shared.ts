import { type Client, connect } from '@meerkat/client';
import { afterAll, beforeAll } from 'vitest';
import { describeWith, type Peer } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { ForeignProgram } from './harness.ts';

/** Libraries whose recipes interoperate with ours; also the names of their layouts. */
export type Library = 'kazoo' | 'curator';

/** The clients of a test. Set before the first test. */
export interface Shared {
  readonly client: Client;
  /** A program of the foreign library, connected to the same server. */
  readonly foreign: ForeignProgram;
  /** Starts another one, for tests that stop it. */
  startForeign(): Promise<ForeignProgram>;
}

export interface SharedOptions {
  readonly library: Library;
  /** `kazoo/<program>.py`, or `curator/<Program>.java`. */
  readonly program: string;
  /** The shared recipes, for the title. */
  readonly what: string;
}

/**
 * Tests of recipes shared with a foreign library: once on our server, once on Apache's. Skipped when the library or the
 * server is not installed.
 */
export function describeShared({ library, program, what }: SharedOptions, body: (shared: Shared) => void): void {
  const start = (port: number): Promise<ForeignProgram> =>
    library === 'kazoo'
      ? ForeignProgram.python(program, port)
      : ForeignProgram.java(program.charAt(0).toUpperCase() + program.slice(1), port);

  for (const kind of SERVER_KINDS) {
    const peers: Peer[] = kind === 'apache' ? [library, 'apache'] : [library];
    describeWith(peers, `${what} shared with ${library} (${kind})`, () => {
      let server: ServerProcess;
      let client: Client;
      let foreign: ForeignProgram;

      beforeAll(async () => {
        server = await ServerProcess.start(kind);
        client = await connect(`127.0.0.1:${server.port}`);
        foreign = await start(server.port);
      });
      afterAll(async () => {
        await foreign?.kill();
        await client?.close();
        await server?.dispose();
      });

      body({
        get client() {
          return client;
        },
        get foreign() {
          return foreign;
        },
        startForeign: () => start(server.port),
      });
    });
  }
}
