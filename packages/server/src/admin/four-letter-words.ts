import type { ConnectionView, ExpiryBucketView, FourLetterWords, ServerView } from '@meerkat/core';
import type { Configuration } from '../config/options.ts';
import type { TlsFigures } from '../metrics/catalogue.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { MonitorBaseline } from '../metrics/monitor-baseline.ts';
import { FULL_VERSION } from '../version.ts';
import { measureDirectory } from './directory-size.ts';
import { listEnvironment } from './environment.ts';
import { formatDate, formatDouble, formatHex, formatRemote } from './java-text.ts';
import { formatMonitor } from './mntr.ts';
import { formatEnsembleConfiguration, modeOf } from './roles.ts';
import type { TraceMask } from './trace-mask.ts';

export interface FourLetterWordsParts {
  readonly configuration: Configuration;
  readonly metrics: Metrics;
  /** What `srst` sets back. */
  readonly baseline: MonitorBaseline;
  readonly traceMask: TraceMask;
  /** The port that clients connect to, and the one for those that speak TLS; −1 = none. */
  clientPort(): number;
  secureClientPort(): number;
  tls(): TlsFigures;
}

/**
 * The four-letter words: short commands in place of a connect request, answered with text.
 *
 * The texts are those of ZooKeeper 3.8's command classes, byte for byte, checked against a recording of Apache's server.
 *
 * @see docs/four-letter-words.md
 */
export function makeFourLetterWords(parts: FourLetterWordsParts): (view: ServerView) => FourLetterWords {
  return (view) => new Words(parts, view);
}

const WORDS: ReadonlySet<string> = new Set([
  'conf',
  'cons',
  'crst',
  'dirs',
  'dump',
  'envi',
  'gtmk',
  'hash',
  'isro',
  'mntr',
  'ruok',
  'srst',
  'srvr',
  'stat',
  'stmk',
  'wchc',
  'wchp',
  'wchs',
]);
/** What telnet sends when it is interrupted; a four-letter word in ZooKeeper, but not in its whitelist by default. */
const TELNET_CLOSE = '\u00ff\u00f4\u00ff\u00fd';
const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests';

class Words implements FourLetterWords {
  readonly #parts: FourLetterWordsParts;
  readonly #view: ServerView;
  readonly #allowed: ReadonlySet<string>;

  constructor(parts: FourLetterWordsParts, view: ServerView) {
    this.#parts = parts;
    this.#view = view;
    const { fourLetterWordsAllowed, readOnlyModeEnabled } = parts.configuration.server;
    const allowed = new Set(fourLetterWordsAllowed.includes('*') ? [...WORDS, TELNET_CLOSE] : fourLetterWordsAllowed);
    allowed.add('srvr');
    if (readOnlyModeEnabled) allowed.add('isro');
    this.#allowed = allowed;
  }

  isWord(word: string): boolean {
    // When it is whitelisted, ZooKeeper has no command for it and reads it as a length.
    return WORDS.has(word) || (word === TELNET_CLOSE && !this.#allowed.has(word));
  }

  hasArgument(word: string): boolean {
    return word === 'stmk' && this.#allowed.has(word);
  }

  answer(word: string, argument: bigint | null): Iterable<string> {
    if (!this.#allowed.has(word)) {
      return [`${word === TELNET_CLOSE ? 'telnet close' : word} is not executed because it is not in the whitelist.\n`];
    }
    const text = this.#answer(word, argument);
    return typeof text === 'string' ? [text] : text;
  }

  /** Long texts in pieces. */
  #answer(word: string, argument: bigint | null): string | Iterable<string> {
    switch (word) {
      case 'ruok':
        return 'imok';
      case 'envi':
        return `Environment:\n${listEnvironment()
          .map(([key, value]) => `${key}=${value}\n`)
          .join('')}`;
      case 'gtmk':
        return String(this.#parts.traceMask.value);
      case 'stmk':
        this.#parts.traceMask.value = argument ?? this.#parts.traceMask.value;
        return String(this.#parts.traceMask.value);
      case 'isro':
        return !this.#view.isServing ? 'null' : this.#view.isReadOnly ? 'ro' : 'rw';
      case 'hash':
        return this.#view.isServing ? this.#formatDigests() : NOT_SERVING;
      default:
        return this.#view.isServing ? this.#answerServing(word) : `${NOT_SERVING}\n`;
    }
  }

  #answerServing(word: string): string | Iterable<string> {
    const view = this.#view;
    switch (word) {
      case 'srvr':
        return this.#formatServer();
      case 'stat':
        return this.#formatServerAndClients();
      case 'conf':
        return this.#formatConfiguration();
      case 'cons':
        return formatConnections(view, formatConnection);
      case 'crst':
        view.resetConnectionStats();
        return 'Connection stats reset.\n';
      case 'srst':
        resetStats(view, this.#parts);
        return 'Server stats reset.\n';
      case 'dirs': {
        const { snapshotDirectory, logDirectory } = this.#parts.configuration.core;
        return `datadir_size: ${measureDirectory(snapshotDirectory)}\nlogdir_size: ${measureDirectory(logDirectory)}\n`;
      }
      case 'dump':
        return this.#formatDump();
      case 'mntr':
        return formatMonitor({ ...this.#parts, view }, this.#parts.baseline);
      case 'wchs': {
        const { connections, paths, watches } = view.watches.summary();
        return `${connections} connections watching ${paths} paths\nTotal watches:${watches}\n`;
      }
      case 'wchc':
        return formatWatches(view.watches.bySession(), formatSession, (path) => path);
      case 'wchp':
        return formatWatches(view.watches.byPath(), (path) => path, formatSession);
      default:
        return '';
    }
  }

  #formatServer(): string {
    return `${FIRST_LINE}${this.#formatCounts()}`;
  }

  *#formatServerAndClients(): Iterable<string> {
    yield `${FIRST_LINE}Clients:\n`;
    yield* formatConnections(this.#view, formatConnectionBriefly);
    yield this.#formatCounts();
  }

  #formatCounts(): string {
    const view = this.#view;
    const { stats } = view;
    const latency = `${Math.trunc(stats.latencyMin)}/${formatDouble(stats.latencyAverage)}/${Math.trunc(stats.latencyMax)}`;
    const sizes = view.ensemble?.proposalSizes ?? null;
    const proposals = sizes === null ? '' : `Proposal sizes last/min/max: ${sizes.last}/${sizes.min}/${sizes.max}\n`;
    return `Latency min/avg/max: ${latency}
Received: ${stats.packetsReceived}
Sent: ${stats.packetsSent}
Connections: ${view.connectionCount}
Outstanding: ${view.outstandingRequests}
Zxid: 0x${formatHex(view.lastZxid)}
Mode: ${modeOf(view)}
Node count: ${view.znodeCount}
${proposals}`;
  }

  #formatConfiguration(): string {
    const { core, server } = this.#parts.configuration;
    const { ensemble } = this.#view;
    const quorum =
      ensemble === null || core.ensemble === null || this.#view.isReadOnly
        ? ''
        : formatEnsembleConfiguration(ensemble, core.serverId, core.ensemble);
    return `clientPort=${this.#parts.clientPort()}
secureClientPort=${this.#parts.secureClientPort()}
dataDir=${core.snapshotDirectory}
dataDirSize=${measureDirectory(core.snapshotDirectory)}
dataLogDir=${core.logDirectory}
dataLogSize=${measureDirectory(core.logDirectory)}
tickTime=${core.tickTimeMs}
maxClientCnxns=${core.connectionsPerHostMax}
minSessionTimeout=${core.sessionTimeoutMinMs}
maxSessionTimeout=${core.sessionTimeoutMaxMs}
clientPortListenBacklog=${server.listenBacklog}
serverId=${ensemble === null ? STANDALONE_SERVER_ID : core.serverId}
${quorum}`;
  }

  *#formatDump(): Iterable<string> {
    const view = this.#view;
    yield 'SessionTracker dump:\n';
    yield* this.#formatSessions();
    const owners = view.sessionsWithEphemerals();
    yield `ephemeral nodes dump:\nSessions with Ephemerals (${owners.length}):\n`;
    yield* formatGroups(
      owners.map((id) => [id, view.ephemeralsOf(id)] as const),
      (id) => `${formatSession(id)}:`,
      (path) => path,
    );
    const connections = view.connectionBuckets();
    yield `Connections dump:\nConnections Sets (${connections.length})/(${countMembers(connections)}):\n`;
    yield* formatBuckets(
      connections,
      ({ remote, sessionId }) => `ip: ${formatRemote(remote)} sessionId: ${formatSession(sessionId)}`,
    );
  }

  /**
   * By the time at which they expire; only the leader of an ensemble knows that, the others list all. Those that only one
   * server knows stand before them, where there may be some.
   */
  *#formatSessions(): Iterable<string> {
    const view = this.#view;
    const hasLocal = view.localSessionCount !== null;
    if (hasLocal) {
      const buckets = view.localSessionBuckets();
      yield `Local Session Sets (${buckets.length})/(${countMembers(buckets)}):\n`;
      yield* formatBuckets(buckets, formatSession);
    }
    const role = view.ensemble?.role ?? 'leading';
    if (role !== 'leading') {
      const ids = [...view.sessionIds()].filter((id) => view.timeoutMsOf(id) !== null);
      yield `Global Sessions(${ids.length}):\n`;
      for (const id of ids) {
        const timeoutMs = view.timeoutMsOf(id);
        if (timeoutMs !== null) yield `${formatSession(id)}\t${timeoutMs}ms\n`;
      }
      return;
    }
    const buckets = view.sessionBuckets();
    yield `${hasLocal ? 'Global ' : ''}Session Sets (${buckets.length})/(${countMembers(buckets)}):\n`;
    yield* formatBuckets(buckets, formatSession);
  }

  #formatDigests(): string {
    return this.#view
      .digests()
      .map(({ zxid, digest }) => `${formatHex(zxid)}: ${digest}\n`)
      .join('');
  }
}

/** `srst` and the admin command `stat_reset`. */
export function resetStats(view: ServerView, parts: Pick<FourLetterWordsParts, 'metrics' | 'tls' | 'baseline'>): void {
  view.stats.reset();
  view.ensemble?.proposalSizes?.reset();
  parts.baseline.reset({ ...parts, view });
}

const FIRST_LINE = `Zookeeper version: ${FULL_VERSION}\n`;

/** What Apache's standalone server shows, although its session ids carry a 1. */
const STANDALONE_SERVER_ID = 0;

function formatSession(sessionId: bigint): string {
  return `0x${formatHex(sessionId)}`;
}

/** The line of a connection in `stat`. */
function formatConnectionBriefly(connection: ConnectionView): string {
  const interest = (connection.isReading ? 1 : 0) + (connection.isWriting ? 4 : 0);
  const { outstandingRequests, packetsReceived, packetsSent } = connection;
  const counts = `queued=${outstandingRequests},recved=${packetsReceived},sent=${packetsSent}`;
  return ` ${formatRemote(connection.remote)}[${interest}](${counts})\n`;
}

/** The line of a connection in `cons`: more once it has a session. */
function formatConnection(connection: ConnectionView): string {
  const line = formatConnectionBriefly(connection);
  if (connection.sessionId === 0n) return line;
  const fields = [
    `sid=${formatSession(connection.sessionId)}`,
    `lop=${connection.lastOperation}`,
    `est=${connection.establishedWallMs}`,
    `to=${connection.sessionTimeoutMs}`,
    ...(connection.lastCxid >= 0 ? [`lcxid=0x${formatHex(connection.lastCxid)}`] : []),
    `lzxid=0x${formatHex(connection.lastZxid)}`,
    `lresp=${Math.trunc(connection.lastResponseMs)}`,
    `llat=${Math.trunc(connection.lastLatencyMs)}`,
    // No latency is known after crst, which ZooKeeper shows as 0.
    `minlat=${Math.trunc(Math.min(connection.minLatencyMs, connection.maxLatencyMs))}`,
    `avglat=${Math.trunc(connection.averageLatencyMs)}`,
    `maxlat=${Math.trunc(connection.maxLatencyMs)}`,
  ];
  return line.replace(/\)\n$/, `,${fields.join(',')})\n`);
}

function* formatConnections(view: ServerView, format: (connection: ConnectionView) => string): Iterable<string> {
  for (const connection of view.connections()) yield format(connection);
  yield '\n';
}

function* formatWatches<Key, Member>(...groups: Parameters<typeof formatGroups<Key, Member>>): Iterable<string> {
  yield* formatGroups(...groups);
  yield '\n';
}

/** A line for each group, and one with a tab before it for each of its members. */
function* formatGroups<Key, Member>(
  groups: Iterable<readonly [Key, Iterable<Member>]>,
  formatKey: (key: Key) => string,
  formatMember: (member: Member) => string,
): Iterable<string> {
  for (const [key, members] of groups) {
    yield `${formatKey(key)}\n`;
    for (const member of members) yield `\t${formatMember(member)}\n`;
  }
}

function* formatBuckets<Member>(
  buckets: readonly ExpiryBucketView<Member>[],
  formatMember: (member: Member) => string,
): Iterable<string> {
  for (const { expiresAtWallMs, members } of buckets) {
    yield `${members.length} expire at ${formatDate(expiresAtWallMs)}:\n`;
    for (const member of members) yield `\t${formatMember(member)}\n`;
  }
}

function countMembers(buckets: readonly { readonly members: readonly unknown[] }[]): number {
  return buckets.reduce((sum, bucket) => sum + bucket.members.length, 0);
}
