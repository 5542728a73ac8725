import { readdirSync, statSync } from 'node:fs';
import type { ConnectionView, FourLetterWords, ServerView } from '@meerkat/core';
import type { Configuration } from '../config/options.ts';
import type { Metrics } from '../metrics.ts';
import { FULL_VERSION } from '../version.ts';
import { listEnvironment } from './environment.ts';
import { formatDate, formatDouble, formatHex, formatRemote } from './java-text.ts';
import { formatMonitor } from './mntr.ts';
import { formatEnsembleConfiguration, modeOf } from './roles.ts';

export interface FourLetterWordsParts {
  readonly configuration: Configuration;
  readonly metrics: Metrics;
  /** The port that clients connect to. */
  clientPort(): number;
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
/** What telnet sends when it is interrupted; ZooKeeper knows it as a word that nobody may execute. */
const TELNET_CLOSE = '\u00ff\u00f4\u00ff\u00fd';
const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests';
/** ZooTrace's default: session and server-to-server packets, and sessions. */
const DEFAULT_TRACE_MASK = 306n;

class Words implements FourLetterWords {
  readonly #parts: FourLetterWordsParts;
  readonly #view: ServerView;
  readonly #allowed: ReadonlySet<string>;
  /** Kept for `gtmk`; nothing depends on it. */
  #traceMask = DEFAULT_TRACE_MASK;

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
    // Where it is allowed there is nothing to execute, and ZooKeeper goes on to read it as a length.
    return WORDS.has(word) || (word === TELNET_CLOSE && !this.#allowed.has(word));
  }

  answer(word: string, argument: bigint | null): string {
    if (!this.#allowed.has(word)) {
      return `${word === TELNET_CLOSE ? 'telnet close' : word} is not executed because it is not in the whitelist.\n`;
    }
    switch (word) {
      case 'ruok':
        return 'imok';
      case 'envi':
        return `Environment:\n${listEnvironment()
          .map(([key, value]) => `${key}=${value}\n`)
          .join('')}`;
      case 'gtmk':
        return String(this.#traceMask);
      case 'stmk':
        this.#traceMask = argument ?? this.#traceMask;
        return String(this.#traceMask);
      case 'isro':
        return this.#view.isServing ? 'rw' : 'null';
      case 'hash':
        return this.#view.isServing ? this.#formatDigests() : NOT_SERVING;
      default:
        return this.#view.isServing ? this.#answerServing(word) : `${NOT_SERVING}\n`;
    }
  }

  #answerServing(word: string): string {
    const view = this.#view;
    switch (word) {
      case 'srvr':
        return this.#formatServer(false);
      case 'stat':
        return this.#formatServer(true);
      case 'conf':
        return this.#formatConfiguration();
      case 'cons':
        return `${view.connections().map(formatConnection).join('')}\n`;
      case 'crst':
        view.resetConnectionStats();
        return 'Connection stats reset.\n';
      case 'srst':
        view.stats.reset();
        view.ensemble?.proposalSizes?.reset();
        this.#parts.metrics.reset();
        return 'Server stats reset.\n';
      case 'dirs': {
        const { snapshotDirectory, logDirectory } = this.#parts.configuration.core;
        return `datadir_size: ${measureDirectory(snapshotDirectory)}\nlogdir_size: ${measureDirectory(logDirectory)}\n`;
      }
      case 'dump':
        return this.#formatDump();
      case 'mntr':
        return formatMonitor(view, this.#parts.metrics);
      case 'wchs': {
        const { connections, paths, watches } = view.watches.summary();
        return `${connections} connections watching ${paths} paths\nTotal watches:${watches}\n`;
      }
      case 'wchc':
        return `${formatGroups(view.watches.bySession(), formatSession, (path) => path)}\n`;
      case 'wchp':
        return `${formatGroups(view.watches.byPath(), (path) => path, formatSession)}\n`;
      default:
        return '';
    }
  }

  #formatServer(withClients: boolean): string {
    const view = this.#view;
    const { stats } = view;
    const connections = view.connections();
    const clients = withClients ? `Clients:\n${connections.map(formatConnectionBriefly).join('')}\n` : '';
    const latency = `${Math.trunc(stats.latencyMin)}/${formatDouble(stats.latencyAverage)}/${Math.trunc(stats.latencyMax)}`;
    const sizes = view.ensemble?.proposalSizes ?? null;
    const proposals = sizes === null ? '' : `Proposal sizes last/min/max: ${sizes.last}/${sizes.min}/${sizes.max}\n`;
    return `Zookeeper version: ${FULL_VERSION}
${clients}Latency min/avg/max: ${latency}
Received: ${stats.packetsReceived}
Sent: ${stats.packetsSent}
Connections: ${connections.length}
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
      ensemble === null || core.ensemble === null
        ? ''
        : formatEnsembleConfiguration(ensemble, core.serverId, core.ensemble);
    return `clientPort=${this.#parts.clientPort()}
secureClientPort=-1
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

  #formatDump(): string {
    const view = this.#view;
    const connections = view.connectionBuckets();
    const ephemerals = view.ephemerals();
    const connectionBuckets = connections.map(({ expiresAtWallMs, members }) =>
      formatBucket(
        expiresAtWallMs,
        members.map(({ remote, sessionId }) => `ip: ${formatRemote(remote)} sessionId: ${formatSession(sessionId)}`),
      ),
    );
    return `SessionTracker dump:
${this.#formatSessions()}ephemeral nodes dump:
Sessions with Ephemerals (${ephemerals.size}):
${formatGroups(
  ephemerals,
  (id) => `${formatSession(id)}:`,
  (path) => path,
)}Connections dump:
Connections Sets (${connections.length})/(${countMembers(connections)}):
${connectionBuckets.join('')}`;
  }

  /** By the time at which they expire; only the leader of an ensemble knows that, the others list all. */
  #formatSessions(): string {
    const view = this.#view;
    const role = view.ensemble?.role ?? 'leading';
    if (role !== 'leading') {
      const sessions = view.sessions().toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const lines = sessions.map(({ id, timeoutMs }) => `${formatSession(id)}\t${timeoutMs}ms\n`);
      return `Global Sessions(${sessions.length}):\n${lines.join('')}`;
    }
    const buckets = view.sessionBuckets();
    const lines = buckets.map(({ expiresAtWallMs, members }) =>
      formatBucket(expiresAtWallMs, members.map(formatSession)),
    );
    return `Session Sets (${buckets.length})/(${countMembers(buckets)}):\n${lines.join('')}`;
  }

  #formatDigests(): string {
    return this.#view
      .digests()
      .map(({ zxid, digest }) => `${formatHex(zxid)}: ${digest}\n`)
      .join('');
  }
}

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

/** A line for each group, and one with a tab before it for each of its members. */
function formatGroups<Key, Member>(
  groups: ReadonlyMap<Key, readonly Member[]>,
  formatKey: (key: Key) => string,
  formatMember: (member: Member) => string,
): string {
  let text = '';
  for (const [key, members] of groups) {
    text += `${formatKey(key)}\n`;
    for (const member of members) text += `\t${formatMember(member)}\n`;
  }
  return text;
}

function formatBucket(expiresAtWallMs: number, lines: readonly string[]): string {
  return `${lines.length} expire at ${formatDate(expiresAtWallMs)}:\n${lines.map((line) => `\t${line}\n`).join('')}`;
}

function countMembers(buckets: readonly { readonly members: readonly unknown[] }[]): number {
  return buckets.reduce((sum, bucket) => sum + bucket.members.length, 0);
}

/** Bytes of all files below a directory; what disappears meanwhile counts nothing. */
function measureDirectory(path: string): number {
  try {
    return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) return sum + measureDirectory(below);
      return entry.isFile() ? sum + statSync(below).size : sum;
    }, 0);
  } catch {
    return 0;
  }
}
