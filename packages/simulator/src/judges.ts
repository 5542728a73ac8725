import { type Violation, Violations } from './checkers/violation.ts';
import type { History } from './history.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** Everybody who says whether a promise was broken: while the servers work, when all is over, and about what clients saw. */
export class Judges {
  readonly #ensemble: VirtualEnsemble;
  readonly #own: Violations;

  /** @param mayFail whether a server is free to end by itself */
  constructor(
    world: VirtualWorld,
    ensemble: VirtualEnsemble,
    _history: History,
    mayFail: (server: VirtualServer) => boolean,
  ) {
    this.#ensemble = ensemble;
    this.#own = new Violations(() => world.nowMs);
    world.watch({
      onChange: (server, what) => {
        if (!what.startsWith('ends by itself') || mayFail(server)) return;
        this.#own.report('A2', [server.serverId], `${server.host} ${what}, though nothing was wrong with its disk`);
      },
    });
  }

  /** Those of which the earliest comes first. */
  get violations(): readonly Violation[] {
    return this.#own.list;
  }

  report(invariant: string, message: string): void {
    this.#own.report(invariant, [], message);
  }

  /** At rest: all servers have the same tree. */
  judgeServers(): void {
    const digests = this.#ensemble.servers.map((server) => JSON.stringify(summaryOf(server)));
    if (new Set(digests).size > 1) this.report('Z17', `the servers differ at rest: ${digests.join(' ')}`);
  }

  judgeHistory(): void {}
}

function summaryOf(server: VirtualServer): object | null {
  const view = server.core?.view;
  if (view === undefined) return null;
  const { lastZxid, znodeCount, ephemeralCount, approximateDataSize } = view;
  const last = view.digests().at(-1);
  return {
    lastZxid,
    znodeCount,
    ephemeralCount,
    approximateDataSize,
    digest: last === undefined ? null : `${last.zxid} ${last.digest}`,
  };
}
