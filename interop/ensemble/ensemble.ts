import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fourLetterWord, freePort, type ServerKind, ServerProcess } from '../harness/server-process.ts';

/** One server of an ensemble: its program, and whether it is an observer. */
export interface Place {
  readonly kind: ServerKind;
  readonly isObserver?: boolean;
  /** Limit of open file descriptors of its process. */
  readonly descriptorsMax?: number;
  /** Its JAAS file. */
  readonly jaas?: string;
  /** Whether its admin port is open. */
  readonly hasAdmin?: boolean;
  /** Environment of its process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Host that other servers connect to; 127.0.0.1 by default. */
  readonly host?: string;
}

/** Our server with an I/O thread for its clients. */
export const THREADED: Place = { kind: 'meerkat', env: { SERVER_JVMFLAGS: '-Dzookeeper.clientThreads=1' } };

export type Config = Readonly<Record<string, string | number | boolean>>;

/** A server of an ensemble, with its id. */
export interface Member {
  readonly id: number;
  readonly server: ServerProcess;
  readonly isObserver: boolean;
  /** Ports for its learners while it leads, and for the election. */
  readonly quorumPort: number;
  readonly electionPort: number;
}

/** Whether a server's txn log contains this text. */
export function hasLogged({ server }: Member, text: string): boolean {
  const directory = join(server.dataDirectory, 'version-2');
  const logs = readdirSync(directory).filter((name) => name.startsWith('log.'));
  return logs.some((name) => readFileSync(join(directory, name)).includes(text));
}

/** Deletes all data of a stopped server except its myid. */
export function wipe({ server }: Member): void {
  rmSync(join(server.dataDirectory, 'version-2'), { recursive: true });
}

/** Milliseconds. Short, so that sessions of dead clients expire soon and a lost leader is detected by timeout. */
const TICK_MS = 500;

/** An ensemble of Apache's servers and ours, as processes on loopback. Ids start at 1, in the order of the places. */
export class Ensemble {
  readonly members: readonly Member[];
  readonly #directory: string;

  /**
   * @param more lines of every server's zoo.cfg
   * @returns once every server serves clients
   */
  static async start(places: readonly Place[], more: Config = {}): Promise<Ensemble> {
    const directory = mkdtempSync(join(tmpdir(), 'interop-ensemble-'));
    const lines: Record<string, string> = {};
    const ports: { quorumPort: number; electionPort: number }[] = [];
    for (const [i, { isObserver = false, host = '127.0.0.1' }] of places.entries()) {
      const role = isObserver ? 'observer' : 'participant';
      const quorumPort = await freePort();
      const electionPort = await freePort();
      ports.push({ quorumPort, electionPort });
      lines[`server.${i + 1}`] = `${host}:${quorumPort}:${electionPort}:${role}`;
    }
    const starts = places.map(
      async ({ kind, isObserver = false, descriptorsMax, jaas, hasAdmin = false, env = {} }, i): Promise<Member> => {
        const id = i + 1;
        const own = join(directory, String(id));
        mkdirSync(join(own, 'data'), { recursive: true });
        writeFileSync(join(own, 'data', 'myid'), String(id));
        const config = {
          ...lines,
          tickTime: TICK_MS,
          initLimit: 20,
          syncLimit: 10,
          maxSessionTimeout: 60_000,
          preAllocSize: 64,
          ...more,
          ...(isObserver ? { peerType: 'observer' } : {}),
        };
        const limit = descriptorsMax === undefined ? {} : { descriptorsMax };
        const login = jaas === undefined ? {} : { jaas };
        const server = await ServerProcess.start(kind, {
          config,
          directory: own,
          logs: true,
          hasAdmin,
          env,
          ...limit,
          ...login,
        });
        return { id, isObserver, server, ...ports[i]! };
      },
    );
    const settled = await Promise.allSettled(starts);
    const members = settled.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    const ensemble = new Ensemble(members, directory);
    const failed = settled.find((start) => start.status === 'rejected');
    if (failed !== undefined) {
      const logs = ensemble.logs;
      await ensemble.dispose();
      throw new Error(`${String(failed.reason)}\n${logs}`);
    }
    return ensemble;
  }

  private constructor(members: readonly Member[], directory: string) {
    this.members = members;
    this.#directory = directory;
  }

  /** Connect string with all servers. */
  get connectString(): string {
    return this.members.map(({ server }) => `127.0.0.1:${server.port}`).join(',');
  }

  /** Output of all servers. */
  get logs(): string {
    return this.members
      .map(({ id, server }) => `---- server ${id} (${server.kind}), port ${server.port}\n${server.output}`)
      .join('\n');
  }

  /** The reported mode: `leader`, `follower`, `observer`; null while it does not serve or is dead. */
  async modeOf({ server }: Member): Promise<string | null> {
    const answer = await fourLetterWord(server.port, 'srvr').catch(() => '');
    return /^Mode: (.*)$/m.exec(answer)?.[1] ?? null;
  }

  /** The leader; polls until there is one. */
  async leader(): Promise<Member> {
    for (;;) {
      for (const member of this.members) if ((await this.modeOf(member)) === 'leader') return member;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** The server that a session is connected to; null while disconnected. */
  async memberOf(sessionId: bigint): Promise<Member | null> {
    const field = `sid=0x${BigInt.asUintN(64, sessionId).toString(16)},`;
    for (const member of this.members) {
      const answer = await fourLetterWord(member.server.port, 'cons').catch(() => '');
      if (answer.includes(field)) return member;
    }
    return null;
  }

  /** Kills leaders until the leader is of this kind, which must be able to win. */
  async leaderOfKind(kind: ServerKind): Promise<Member> {
    for (;;) {
      const leader = await this.leader();
      if (leader.server.kind === kind) return leader;
      await leader.server.kill();
      await this.leader();
      await leader.server.restart();
    }
  }

  async dispose(): Promise<void> {
    await Promise.all(this.members.map(({ server }) => server.dispose()));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
