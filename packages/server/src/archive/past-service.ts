/**
 * A service in this process that shows a past state: a server core with disk and streams in memory, which no other
 * process can reach. The state is read by an ordinary client, so all that works with a service works with the past.
 *
 * Nothing changes by itself: sessions do not expire while it lives, and containers and TTL znodes stay.
 */
import { type CoreOptions, MemoryDisk, type Ports, ServerCore } from '@meerkat/core';
import { SnapshotWrite } from '@meerkat/core/files';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator } from '../auth/authenticator.ts';
import { makeConfiguration } from '../config/options.ts';
import { NODE_CLOCK } from '../node/clock.ts';
import { NodeRandom } from '../node/random.ts';
import { Turn } from '../node/turn.ts';
import { type PastStream, type PastStreamEvents, StreamPair } from './past-stream.ts';
import type { Rebuilt } from './rebuild.ts';

const DIRECTORY = '/past';
/** A month: nothing of this outlives the command that looks. */
const LONG_MS = 30 * 86_400_000;
const OPTIONS: Partial<CoreOptions> = {
  skipAcl: true,
  extendedTypesEnabled: true,
  forceSync: false,
  preallocateBytes: 0,
  snapCount: 2 ** 30,
  snapBytesMax: 0,
  containerCheckIntervalMs: LONG_MS,
  sessionTimeoutMaxMs: LONG_MS,
  connectionsPerHostMax: 0,
};

export class PastService {
  readonly #turn: Turn;
  readonly #core: ServerCore;
  readonly #stopped: Promise<void>;

  /** Takes the database over: it is of no use to anybody else afterwards. */
  static async start({ database }: Pick<Rebuilt, 'database'>): Promise<PastService> {
    // The clients of these sessions are not here to ping.
    for (const id of database.sessions.keys()) database.sessions.set(id, LONG_MS);
    const disk = new TurnedMemoryDisk();
    await new Promise<void>((resolve, reject) => {
      const turn = new Turn(NODE_CLOCK, reject);
      turn.start({ onTurnEnd() {}, onTick() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY }, disk);
      const ports = { disk, clock: NODE_CLOCK, trace: { emit() {} } };
      const options = { snapshotDirectory: DIRECTORY, digestEnabled: true, isIndispensable: true };
      const write = new SnapshotWrite(ports, options, database, {
        onSnapshotWritten: () => {
          turn.stop();
          resolve();
        },
        onSnapshotFailed: reject,
      });
      turn.run(() => disk.makeDirectory(DIRECTORY, () => write.start()));
    });
    const service = new PastService(disk);
    await service.#serving;
    return service;
  }

  readonly #serving: Promise<void>;

  private constructor(disk: TurnedMemoryDisk) {
    let fail: (error: unknown) => void = () => {};
    let onStopped: () => void = () => {};
    this.#stopped = new Promise((resolve) => {
      onStopped = resolve;
    });
    this.#turn = new Turn(NODE_CLOCK, (error) => fail(error));
    const { core } = makeConfiguration(DIRECTORY, {
      core: { ...OPTIONS, snapshotDirectory: DIRECTORY, logDirectory: DIRECTORY },
    });
    const ports: Ports = {
      clock: NODE_CLOCK,
      random: new NodeRandom(),
      network: NO_NETWORK,
      disk,
      authenticator: makeAuthenticator(DEFAULT_AUTH_OPTIONS),
      trace: { emit() {} },
    };
    let onServing: () => void = () => {};
    this.#serving = new Promise((resolve, reject) => {
      onServing = resolve;
      fail = reject;
    });
    this.#core = new ServerCore(
      ports,
      core,
      { fourLetterWords: () => NO_WORDS },
      {
        onServing: () => onServing(),
        onStopped: () => onStopped(),
        onFailed: (error) => fail(error),
      },
    );
    this.#turn.start(this.#core, disk);
    this.#turn.run(() => this.#core.start());
  }

  /** A client connects. Events come in later turns. */
  connect(events: PastStreamEvents): PastStream {
    return new StreamPair(this.#turn, this.#core, events);
  }

  async stop(): Promise<void> {
    this.#turn.run(() => this.#core.stop());
    await this.#stopped;
    this.#turn.stop();
  }
}

class TurnedMemoryDisk extends MemoryDisk {
  startEffects(): boolean {
    // Only what is there now: what the completions ask for comes after others have had their chance.
    const count = this.pendingCount;
    for (let i = 0; i < count; i++) this.deliver();
    return count > 0;
  }
}

const NO_NETWORK: Ports['network'] = {
  listen: () => ({ close() {} }),
  connect: () => ({ cancel() {} }),
};
const NO_WORDS = { isWord: () => false, hasArgument: () => false, answer: () => [] };
