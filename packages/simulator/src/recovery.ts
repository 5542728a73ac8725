import type { Client } from '@meerkat/client';
import type { Membership } from '@meerkat/protocol';
import { AtRest } from './at-rest.ts';
import { isQuorum } from './checkers/quorum.ts';
import type { History } from './history.ts';
import type { Nemesis } from './nemesis.ts';
import { connectProbe, PROBE_PATH } from './probe.ts';
import type { Checkers } from './run-checkers.ts';
import { stir } from './stir.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import type { VirtualWorld } from './virtual-world.ts';
import type { Workload } from './workload.ts';

/**
 * Virtual milliseconds within which everything works again: several elections, each of them with a synchronization that
 * takes its whole limit, and the longest session timeout.
 */
export const PROGRESS_MS = 30_000;

/** What a run consists of. */
export interface RunParts {
  readonly world: VirtualWorld;
  readonly ensemble: VirtualEnsemble;
  readonly history: History;
  readonly checkers: Checkers;
  readonly workload: Workload;
  readonly nemesis: Nemesis;
}

/**
 * The end of a run: heals everything, requires that all of it works within a bound and that the ensemble then survives the
 * loss of two leaders, fires every remaining watch, and closes all sessions.
 */
export class Recovery {
  readonly #world: VirtualWorld;
  readonly #ensemble: VirtualEnsemble;
  readonly #history: History;
  readonly #checkers: Checkers;
  readonly #workload: Workload;
  readonly #nemesis: Nemesis;
  readonly #atRest: AtRest;
  #tookMs: number | null = null;

  /** @param canMove whether sessions can move between servers */
  constructor({ world, ensemble, history, checkers, workload, nemesis }: RunParts, canMove: boolean) {
    this.#world = world;
    this.#ensemble = ensemble;
    this.#history = history;
    this.#checkers = checkers;
    this.#workload = workload;
    this.#nemesis = nemesis;
    this.#atRest = new AtRest(world, ensemble, checkers, PROGRESS_MS, canMove);
  }

  /** Milliseconds from healing until everything worked; null if it never did. */
  get tookMs(): number | null {
    return this.#tookMs;
  }

  /** Returns early without progress. */
  async run(): Promise<void> {
    if (!(await this.#heal())) return;
    await this.#atRest.checkConnections();
    await this.#within(this.#atRest.checkMoves(), 'L3', 'a session that moves is never answered');
    await this.#atRest.checkLeases();
    await this.#succeedTwice();
    if (this.#checkers.violations.length > 0) return;
    await this.#within(this.#stir(), 'L1', 'the writes of a client without faults do not go through');
    await this.#within(this.#workload.close(), 'L3', 'a session is never closed');
    await this.#atRest.checkSessions();
    await this.#atRest.checkConnections();
    await this.#atRest.checkWatches();
    await this.#atRest.checkFiles();
    await this.#atRest.checkMemory();
    // A session counts as ended when its closeSession is proposed.
    await this.#world.until(() => this.#ensemble.isAtRest, PROGRESS_MS);
    this.#checkers.checkServers();
  }

  /** @returns whether everything works again: a leader, all servers, all clients, a write */
  async #heal(): Promise<boolean> {
    const healedMs = this.#world.nowMs;
    this.#nemesis.heal();
    const isLeft = (): number => healedMs + PROGRESS_MS - this.#world.nowMs;
    const holds = (what: () => boolean): Promise<boolean> =>
      this.#world.until(
        () => {
          this.#nemesis.tend();
          return what();
        },
        isLeft(),
        20,
      );
    if (!(await holds(() => this.#ensemble.leader !== null))) {
      this.#checkers.report('L1', `no server leads ${PROGRESS_MS} ms after everything was healed`);
      return false;
    }
    if (!(await holds(() => this.#workload.isConnected))) {
      this.#checkers.report('L3', `not every client has a connection ${PROGRESS_MS} ms after everything was healed`);
      return false;
    }
    await this.#within(this.#workload.rest(), 'L3', 'a request of a client is never answered');
    await this.#within(this.#write(), 'L1', 'a write does not go through');
    if (!(await holds(() => this.#ensemble.isWhole))) {
      this.#checkers.report('L2', `not every server has caught up ${PROGRESS_MS} ms after everything was healed`);
      return false;
    }
    this.#tookMs = this.#world.nowMs - healedMs;
    // A membership change also closes connections.
    const isSettled = (): boolean => this.#nemesis.isDone && this.#workload.isConnected && this.#ensemble.isWhole;
    if (!(await this.#world.until(isSettled, PROGRESS_MS, 20))) {
      this.#checkers.report('L3', `the last change of the members is not over ${PROGRESS_MS} ms after the recovery`);
      return false;
    }
    return true;
  }

  /**
   * Kills the leader, and the next one before its epoch has begun; by then the first one is back. The remaining servers must
   * agree on a leader, whatever they voted before.
   */
  async #succeedTwice(): Promise<void> {
    const { leader, membershipNow: membership } = this.#ensemble;
    const voters = votersOf(membership);
    const participants = this.#ensemble.servers.filter(({ serverId }) => voters.includes(serverId));
    const others = participants.filter((server) => server !== leader);
    const canSpare = (one: VirtualServer): boolean =>
      isQuorum(
        voters,
        membership.hierarchy,
        voters.filter((id) => id !== one.serverId),
      );
    if (leader === null || participants.length < 3 || !participants.every(canSpare)) return;
    leader.crash();
    const elected = (): VirtualServer | undefined => others.find(({ role }) => role === 'leading');
    await this.#world.until(() => elected() !== undefined, PROGRESS_MS, 1);
    const next = elected();
    if (next === undefined) {
      this.#checkers.report('L1', `no server is elected ${PROGRESS_MS} ms after the leader was killed`);
      return;
    }
    next.crash();
    leader.start();
    const hasLeader = (): boolean => this.#ensemble.leader !== null && this.#workload.isConnected;
    if (!(await this.#world.until(hasLeader, PROGRESS_MS, 20))) {
      this.#checkers.report('L1', `no server leads ${PROGRESS_MS} ms after the leader was killed, and the next one`);
    }
    next.start();
    await this.#world.until(() => this.#ensemble.isWhole, PROGRESS_MS, 20);
    await this.#within(this.#workload.rest(), 'L3', 'a client does not come back');
  }

  async #write(): Promise<void> {
    const client = await this.#connectProbe();
    await client.create(PROBE_PATH, 'the end', { timeoutMs: PROGRESS_MS });
    await client.close();
  }

  /** Changes everything that is watched, while the clients are idle. */
  async #stir(): Promise<void> {
    const client = await this.#connectProbe();
    const { mzxid } = await client.set(PROBE_PATH, 'all is at rest', { timeoutMs: PROGRESS_MS });
    await this.#liftQuotas(client);
    this.#history.note({ kind: 'stir', phase: 'begins', zxid: Number(mzxid) });
    await stir(client, this.#workload.watchable, PROGRESS_MS);
    const last = await client.set(PROBE_PATH, 'the very end', { timeoutMs: PROGRESS_MS });
    // Followers and observers learn of it a little later, and then notify their clients.
    await this.#world.sleep(STIR_MS);
    this.#history.note({ kind: 'stir', phase: 'ends', zxid: Number(last.mzxid) });
    await client.close();
  }

  /** Quotas stay, but no longer refuse anything. */
  async #liftQuotas(client: Client): Promise<void> {
    for (const path of this.#workload.quotaLimits) {
      if ((await client.exists(path)) !== null) await client.set(path, 'count=-1,bytes=-1');
    }
  }

  async #within(work: Promise<unknown>, invariant: string, message: string): Promise<void> {
    let isDone = false;
    work.then(
      () => {
        isDone = true;
      },
      (error: unknown) => this.#world.fail(error),
    );
    if (!(await this.#world.until(() => isDone, PROGRESS_MS))) {
      this.#checkers.report(invariant, `${message} within ${PROGRESS_MS} ms after everything was healed`);
    }
  }

  #connectProbe(): Promise<Client> {
    return connectProbe(this.#world, this.#ensemble.connectString, PROGRESS_MS);
  }
}

function votersOf({ members }: Membership): readonly number[] {
  return members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
}

/** Virtual milliseconds for a commit to reach any server, and from there a program. */
const STIR_MS = 1000;
