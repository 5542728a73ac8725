import {
  formatMembership,
  hexZxid,
  JuteReader,
  PacketType,
  readTxnEntry,
  type TxnEntry,
  ZXID_ZERO,
} from '@meerkat/protocol';
import type { FinalState } from './checkers/final-rules.ts';
import { checkHistory } from './checkers/history.ts';
import { LiveChecker, type LiveCheckerOptions } from './checkers/live-checker.ts';
import { type Violation, Violations } from './checkers/violation.ts';
import { type WireEvent, WireTap } from './checkers/wire.ts';
import { ClientContact } from './client-contact.ts';
import { readLogs } from './disk-reader.ts';
import { DiskReporter } from './disk-reporter.ts';
import type { History } from './history.ts';
import { ShownMembership } from './shown-membership.ts';
import { Sightings } from './sightings.ts';
import { portKindOf, type VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import type { VirtualWorld } from './virtual-world.ts';

/**
 * All checkers of a run: while the servers work (`LiveChecker`), at rest, and at the end on what clients saw
 * (`checkHistory`).
 *
 * It checks itself A1, a program or server that threw; A2, a server that exited by itself for no reason; L1 to L3,
 * missing progress; R5, what servers show of the membership.
 */
export class Checkers {
  readonly #world: VirtualWorld;
  readonly #ensemble: VirtualEnsemble;
  readonly #history: History;
  readonly #own: Violations;
  /** null for a standalone server, which has no peers to agree with. */
  readonly #live: LiveChecker | null;
  readonly #disks: Map<VirtualServer, DiskReporter> = new Map();
  #aboutHistory: readonly Violation[] = [];
  /** Of all servers, once the run has come to rest. */
  #finalStates: readonly FinalState[] = [];
  readonly #sightings = new Sightings();
  readonly #shown = new ShownMembership();
  /** Digests that servers had at some zxids, and the server that reported each first. */
  readonly #digests: Map<number, { readonly host: string; readonly digest: bigint }> = new Map();

  readonly #without: readonly string[];

  /**
   * @param mayFail whether a server is allowed to exit by itself
   * @param without invariants that are not checked
   */
  constructor(
    world: VirtualWorld,
    ensemble: VirtualEnsemble,
    history: History,
    mayFail: (server: VirtualServer) => boolean,
    without: readonly string[] = [],
  ) {
    this.#world = world;
    this.#ensemble = ensemble;
    this.#history = history;
    this.#without = without;
    this.#own = new Violations(() => world.nowMs, undefined, without);
    this.#live = ensemble.servers.length > 1 ? this.#watchLive() : null;
    world.watch(this.#sightings);
    world.watch({
      onTrace: (server, event) => {
        if (event.kind !== 'warning' || !/^the snapshot .* is not usable/.test(event.message) || mayFail(server))
          return;
        this.#own.report('D6', [server.serverId], `${server.host}: ${event.message}, though its disk is in order`);
      },
      onChange: (server, what) => {
        if (!what.startsWith('ends by itself') || mayFail(server)) return;
        this.#own.report('A2', [server.serverId], `${server.host} ${what}, though nothing was wrong with its disk`);
      },
    });
  }

  /** The earliest first. */
  get violations(): readonly Violation[] {
    return [...this.#own.list, ...(this.#live?.violations ?? []), ...this.#aboutHistory].sort(
      (a, b) => a.atMs - b.atMs,
    );
  }

  /** How often checkers were fed with each input. */
  get fed(): ReadonlyMap<string, number> {
    const fed = new Map([...(this.#live?.fed ?? []), ...this.#sightings.counts]);
    const count = (what: string): void => void fed.set(what, (fed.get(what) ?? 0) + 1);
    for (const { kind } of this.#history.entries) count(`history ${kind}`);
    for (const { request, result, error } of this.#history.operations) {
      if (result !== null) count(`${request.op} succeeded`);
      else if (error?.outcome === 'not-applied') count(`${request.op} refused`);
      else count('in doubt');
    }
    return fed;
  }

  report(invariant: string, message: string): void {
    this.#own.report(invariant, [], message);
  }

  /** Called now and then: servers at the same zxid must have the same tree. */
  checkDigests(): void {
    for (const server of this.#ensemble.servers) {
      for (const { zxid, digest } of server.core?.view.digests() ?? []) {
        const known = this.#digests.get(zxid);
        if (known === undefined) this.#digests.set(zxid, { host: server.host, digest });
        else if (known.digest !== digest) {
          const trees = `${known.host} had 0x${known.digest.toString(16)}, ${server.host} 0x${digest.toString(16)}`;
          this.#own.report('Z17', [server.serverId], `two trees at 0x${zxid.toString(16)}: ${trees}`);
        }
      }
    }
  }

  /** At rest, when nothing is left to happen: all servers must have the same data. */
  checkServers(): void {
    this.checkDigests();
    const summaries = this.#ensemble.servers.map((server) => JSON.stringify(summaryOf(server)));
    if (new Set(summaries).size > 1) this.report('Z17', `the servers differ at rest: ${summaries.join(' ')}`);
    for (const server of this.#ensemble.servers) {
      this.#checkConfig(server);
      this.#checkKept(server);
    }
    this.#finalStates = this.#ensemble.servers.flatMap((server) => finalStateOf(server) ?? []);
  }

  /** R5: `/zookeeper/config` shows the membership that is in force at the leader. */
  #checkConfig({ core, host, serverId }: VirtualServer): void {
    const database = core?.view.database() ?? null;
    if (database === null || this.#live === null) return;
    for (const { path, data } of database.znodes()) {
      if (path !== '/zookeeper/config') continue;
      const shown = new TextDecoder().decode(data ?? undefined);
      const due = formatMembership(this.#ensemble.membershipNow);
      if (shown !== due) this.#own.report('R5', [serverId], `${host} shows ${shown}, and in force is ${due}`);
      return;
    }
    this.#own.report('R5', [serverId], `${host} has no /zookeeper/config`);
  }

  /** At the end of the run. */
  checkOperations(): void {
    const committed = this.#committed();
    const server = this.#ensemble.servers[0];
    const txnBytesMax = txnBytesMaxOfServer(server);
    this.#sightings.onEnd(this.#history, committed, txnBytesMax, this.#world.network.backedUpCount);
    this.#aboutHistory = checkHistory(this.#history, committed, {
      finalStates: this.#finalStates,
      // A program is notified in the turn in which the bytes arrive.
      watchGraceMs: 1,
      // The live checker's history records when leaders expired sessions.
      knowsExpiries: this.#live !== null,
      txnBytesMax,
      without: this.#without,
      enforcesQuota: server?.options.enforceQuota ?? false,
      hasLocalSessions: server?.options.ensemble?.localSessionsEnabled ?? false,
    });
  }

  /** R7: a member has on its disk the membership that is in force. */
  #checkKept({ host, serverId, keptMembership, isKeeping }: VirtualServer): void {
    const { version, members } = this.#ensemble.membershipNow;
    if (version === ZXID_ZERO || !members.some((member) => member.serverId === serverId)) return;
    if (isKeeping || keptMembership?.version === version) return;
    const kept = keptMembership === null ? 'none' : hexZxid(keptMembership.version);
    this.#own.report('R7', [serverId], `${host} has kept the membership ${kept}, and in force is ${hexZxid(version)}`);
  }

  #committed(): readonly TxnEntry[] {
    if (this.#live !== null) return this.#live.committed;
    // Everything that a standalone server has logged is committed.
    const [server] = this.#ensemble.servers;
    if (server === undefined) return [];
    const reader = new JuteReader(undefined, 0x10000000);
    return readLogs(server.disk, server.options.logDirectory).flatMap(({ payload }) => {
      reader.reset(payload, 0, payload.length);
      return readTxnEntry(reader) ?? [];
    });
  }

  #watchLive(): LiveChecker {
    const { participants, observers, spares, servers } = this.#ensemble;
    const byId = new Map(servers.map((server) => [server.serverId, server]));
    const live = new LiveChecker({
      members: {
        voters: participants.map(idOf),
        observers: observers.map(idOf),
        spares: spares.map(idOf),
        hierarchy: this.#ensemble.membership.hierarchy,
      },
      nowMs: () => this.#world.nowMs,
      clockMs: (id) => byId.get(id)?.clock.monotonicMs() ?? this.#world.nowMs,
      txnBytesMax: txnBytesMaxOfServer(servers[0]),
      without: this.#without,
      ...limitsOf(servers[0]),
    });
    this.#history.listen(new ClientContact(live, (host) => this.#ensemble.server(host)?.serverId ?? null).onEntry);
    for (const server of servers) {
      this.#disks.set(server, new DiskReporter(live, server, () => server.disk));
    }
    const wire = new WireTap({
      portKind: (_host, port) => {
        this.#sightings.onDialled(port);
        return portKindOf(port);
      },
      serverOf: (host) => this.#ensemble.server(host)?.serverId ?? null,
      onEvent: (event) => {
        this.#noteTruncation(event, byId);
        this.#sightings.onWire(event, servers[0]?.options.ensemble?.commitLogCount ?? 0);
        live.onWire(event);
      },
    });
    this.#world.network.tap = wire;
    this.#world.watch({
      onChange: (server, what) => {
        if (what === 'starts') {
          const disk = this.#disks.get(server);
          disk?.onStarted();
          server.disk.observer = disk ?? null;
          live.onStarted(server.serverId);
          this.#shown.onStarted(server);
        } else if (what === 'gets an empty disk') {
          this.#disks.get(server)?.onWiped();
          live.onWiped(server.serverId);
        } else if (what === 'is resumed') live.onResumed(server.serverId);
        else if (!server.isRunning || ENDS.test(what)) live.onStopped(server.serverId);
      },
      onTurn: (server) => {
        if (!server.isServing) return;
        live.onServing(server.serverId);
        this.#reportShown(server, this.#shown.findFault(server));
      },
      onTrace: (server, event) => {
        if (event.kind === 'session-expired') this.#history.note({ kind: 'expired', sessionId: event.sessionId });
        if (event.kind === 'recovered') this.#disks.get(server)?.onRecovered();
        if (event.kind === 'files-purged' && logs(server)) this.#disks.get(server)?.onPurged();
        live.onTrace(server.serverId, event);
      },
      onApplied: (server, zxid, treeDigest) => live.onApplied(server.serverId, zxid, null, treeDigest),
    });
    return live;
  }

  #reportShown({ serverId }: VirtualServer, fault: string | null): void {
    if (fault !== null) this.#own.report('R5', [serverId], fault);
  }

  #noteTruncation(event: WireEvent, byId: ReadonlyMap<number, VirtualServer>): void {
    if (event.kind !== 'leader-packet' || event.stage !== 'received' || event.packet.type !== PacketType.trunc) return;
    const server = byId.get(event.to);
    if (server !== undefined) this.#disks.get(server)?.onTruncateAsked(event.packet.zxid);
  }
}

/** How the world describes the end of a process. */
const ENDS = /^(is killed|loses its power|has stopped|ends by itself)/;

/** An observer may be configured not to log. */
function logs({ options: { ensemble, serverId } }: VirtualServer): boolean {
  const isObserver = ensemble?.membership.members.some(
    (member) => member.serverId === serverId && member.role === 'observer',
  );
  return isObserver !== true || ensemble?.syncEnabled !== false;
}

/** All servers are configured alike. */
function limitsOf(server: VirtualServer | undefined): Pick<LiveCheckerOptions, 'limits'> {
  const { ensemble, tickTimeMs } = server?.options ?? { ensemble: null, tickTimeMs: 0 };
  if (ensemble === null) return {};
  return { limits: { tickTimeMs, initLimit: ensemble.initLimit, syncLimit: ensemble.syncLimit } };
}

/** A second implementation of the server's rule: `jute.maxbuffer`, and its `extrasize` or 1024. */
function txnBytesMaxOfServer(server: VirtualServer | undefined): number {
  const { frameBytesMax, extraBytesMax } = server?.options ?? { frameBytesMax: 0xfffff, extraBytesMax: null };
  return frameBytesMax + Math.max(extraBytesMax ?? frameBytesMax, 1024);
}

function idOf(server: VirtualServer): number {
  return server.serverId;
}

function finalStateOf({ core, serverId }: VirtualServer): FinalState | null {
  const database = core?.view.database() ?? null;
  if (core === null || database === null) return null;
  const { lastZxid, treeDigest, sessions } = database;
  return { server: serverId, lastZxid, treeDigest, digests: core.view.digests(), znodes: database.znodes(), sessions };
}

function summaryOf(server: VirtualServer): object | null {
  const view = server.core?.view;
  if (view === undefined) return null;
  const { lastZxid, znodeCount, ephemeralCount, approximateDataSize } = view;
  return { lastZxid, znodeCount, ephemeralCount, approximateDataSize };
}
