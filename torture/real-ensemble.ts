import type { FromServer } from './messages.ts';
import type { TortureNetwork } from './network.ts';
import type { ServerFiles } from './server-files.ts';
import { ServerProcess } from './server-process.ts';

export interface EnsembleEvents {
  onMessage(server: ServerProcess, message: FromServer): void;
  onStarted(server: ServerProcess): void;
  /** A server has exited without being asked to. */
  onDied(server: ServerProcess, reason: string): void;
}

/** The ensemble; each server is a process. */
export class RealEnsemble {
  /** Ordered by id, from 1 on. */
  readonly servers: readonly ServerProcess[];

  constructor(files: readonly ServerFiles[], network: TortureNetwork, events: EnsembleEvents) {
    this.servers = files.map((each) => {
      const server: ServerProcess = new ServerProcess(each, network, {
        onMessage: (message) => events.onMessage(server, message),
        onStarted: () => events.onStarted(server),
        onDied: (reason) => events.onDied(server, reason),
      });
      return server;
    });
  }

  get ids(): readonly number[] {
    return this.servers.map(({ id }) => id);
  }

  server(host: string): ServerProcess | null {
    return this.servers.find((server) => server.host === host) ?? null;
  }

  /** The server that reports that it leads, serves, and is not paused; of several the one with the highest epoch. */
  get leader(): ServerProcess | null {
    let leader: ServerProcess | null = null;
    for (const server of this.servers) {
      const { status, isPaused } = server;
      if (isPaused || status === null || status.role !== 'leading' || !status.isServing) continue;
      if (leader === null || status.epoch > (leader.status?.epoch ?? 0)) leader = server;
    }
    return leader;
  }

  /** The participants of the newest membership known to any server. */
  get voters(): readonly number[] {
    let version = -1;
    let voters: readonly number[] = [];
    for (const { status } of this.servers) {
      if (status === null || status.membershipVersion <= version) continue;
      version = status.membershipVersion;
      voters = status.voters;
    }
    return voters;
  }

  /** Every server serves clients in the same epoch. */
  get isWhole(): boolean {
    const { leader } = this;
    return (
      leader !== null &&
      this.servers.every(
        ({ status }) =>
          status?.isServing === true && status.leader === leader.id && status.epoch === leader.status?.epoch,
      )
    );
  }

  /** No further txn will occur by itself: all servers are at one zxid, and no session is left to expire. */
  get isAtRest(): boolean {
    const lastZxid = this.leader?.status?.lastZxid;
    return (
      this.isWhole && this.servers.every(({ status }) => status?.lastZxid === lastZxid && status?.sessionCount === 0)
    );
  }

  /** Describes the servers, for the error message of a wait that timed out. */
  describe(): string {
    return this.servers
      .map(({ id, isRunning, isPaused, status }) => {
        if (!isRunning) return `server ${id} is dead`;
        if (isPaused) return `server ${id} is paused`;
        if (status === null) return `server ${id} starts`;
        const { role, isServing, epoch, lastZxid, sessionCount } = status;
        const serving = isServing ? '' : ', not serving';
        return `server ${id} ${role}${serving}, epoch ${epoch}, zxid 0x${lastZxid.toString(16)}, ${sessionCount} sessions`;
      })
      .join('; ');
  }

  start(): void {
    for (const server of this.servers) server.start();
  }

  /** Shuts all servers down; those that have not exited within the limit are killed. */
  async stop(limitMs: number): Promise<void> {
    for (const server of this.servers) {
      server.terminate();
      server.resume();
    }
    const timer = setTimeout(() => void this.kill(), limitMs);
    await Promise.all(this.servers.map(({ ended }) => ended));
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
  }
}
