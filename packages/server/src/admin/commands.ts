import { statSync } from 'node:fs';
import type { ServerView, SnapshotFile } from '@meerkat/core';
import type { Member } from '@meerkat/protocol';
import type { Configuration } from '../config/options.ts';
import type { TlsFigures } from '../metrics/catalogue.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { monitorValues } from '../metrics/monitor.ts';
import type { MonitorBaseline } from '../metrics/monitor-baseline.ts';
import { FULL_VERSION } from '../version.ts';
import { showConnection, showConnectionBriefly, showConnections } from './connection-fields.ts';
import { measureDirectory } from './directory-size.ts';
import { listEnvironment } from './environment.ts';
import { resetStats } from './four-letter-words.ts';
import { type Fields, JavaDouble, JsonFields, JsonList, mapped } from './java-json.ts';
import { formatHex } from './java-text.ts';
import { modeOf, peerStateOf } from './roles.ts';
import type { TraceMask } from './trace-mask.ts';

/** What the commands look at. */
export interface CommandSource {
  readonly view: ServerView;
  readonly configuration: Configuration;
  readonly metrics: Metrics;
  readonly baseline: MonitorBaseline;
  readonly traceMask: TraceMask;
  tls(): TlsFigures;
  clientPort(): number;
  /** The newest snapshot on the disk; null when there is none. */
  lastSnapshot(): SnapshotFile | null;
}

/** One of ZooKeeper's admin commands. */
export interface AdminCommand {
  /** The first one is its name. */
  readonly names: readonly string[];
  readonly summary: string;
  /** Answered while clients are not served, too. */
  readonly needsNoServer?: true;
  /** @param query the arguments behind "?" */
  fields(source: CommandSource, query: Readonly<Record<string, string>>): Fields;
}

/** A field that says what is wrong stands where the command has put it, and not at the end. */
const ERROR = 'error';

export const ADMIN_COMMANDS: readonly AdminCommand[] = [
  {
    names: ['configuration', 'conf', 'config'],
    summary: 'the configuration in effect',
    *fields({ configuration: { core, server }, clientPort, view }) {
      yield ['client_port', clientPort()];
      yield ['data_dir', core.snapshotDirectory];
      yield ['data_log_dir', core.logDirectory];
      yield ['tick_time', core.tickTimeMs];
      yield ['max_client_cnxns', core.connectionsPerHostMax];
      yield ['min_session_timeout', core.sessionTimeoutMinMs];
      yield ['max_session_timeout', core.sessionTimeoutMaxMs];
      yield ['server_id', view.ensemble === null ? 0 : core.serverId];
      yield ['client_port_listen_backlog', server.listenBacklog];
    },
  },
  {
    names: ['connection_stat_reset', 'crst'],
    summary: 'sets back the counters of all connections',
    fields({ view }) {
      view.resetConnectionStats();
      return [];
    },
  },
  {
    names: ['connections', 'cons'],
    summary: 'the connections of clients',
    *fields({ view }) {
      yield* showConnections(view, showConnection);
    },
  },
  {
    names: ['dirs'],
    summary: 'bytes in the directories of snapshots and log',
    *fields({ configuration: { core } }) {
      yield ['datadir_size', measureDirectory(core.snapshotDirectory)];
      yield ['logdir_size', measureDirectory(core.logDirectory)];
    },
  },
  {
    names: ['dump'],
    summary: 'sessions by the time at which they expire, and ephemerals by session',
    *fields({ view }) {
      yield ['expiry_time_to_session_ids', new JsonFields(expiries(view))];
      yield ['session_id_to_ephemeral_paths', new JsonFields(ephemerals(view))];
    },
  },
  {
    names: ['environment', 'env', 'envi'],
    summary: 'the environment of the process',
    needsNoServer: true,
    fields: () => listEnvironment(),
  },
  {
    names: ['get_trace_mask', 'gtmk'],
    summary: 'the trace mask, which decides nothing here',
    needsNoServer: true,
    *fields({ traceMask }) {
      yield ['tracemask', traceMask.value];
    },
  },
  {
    names: ['hash'],
    summary: 'digests of the tree at every 128th zxid',
    *fields({ view }) {
      const digests = mapped(view.digests(), ({ zxid, digest }) => {
        return new JsonFields([
          ['zxid', zxid],
          ['digest', BigInt.asIntN(64, digest)],
          ['digest_version', 2],
        ]);
      });
      yield ['digests', new JsonList(digests)];
    },
  },
  {
    names: ['initial_configuration', 'icfg'],
    summary: 'zoo.cfg as it was read, without secrets',
    *fields({ configuration: { server } }) {
      yield ['initial_configuration', server.admin?.configurationText ?? ''];
    },
  },
  {
    names: ['is_read_only', 'isro'],
    summary: 'whether reads alone are answered',
    *fields({ view }) {
      yield ['read_only', view.isReadOnly];
    },
  },
  {
    names: ['last_snapshot', 'lsnp'],
    summary: 'the newest snapshot on the disk',
    *fields({ lastSnapshot }) {
      const newest = lastSnapshot();
      yield ['zxid', newest === null ? 'ffffffffffffffff' : formatHex(newest.zxid)];
      yield ['timestamp', newest === null ? -1 : secondsOf(newest.path)];
    },
  },
  {
    names: ['leader', 'lead'],
    summary: 'who leads',
    *fields({ view: { ensemble, serverId } }) {
      if (ensemble === null) {
        yield [ERROR, 'server is not initialized'];
        return;
      }
      const leader = ensemble.membership.members.find((member) => member.serverId === ensemble.leader);
      yield ['is_leader', ensemble.leader === serverId];
      yield ['leader_id', ensemble.leader ?? -1];
      yield ['leader_ip', leader?.addresses[0]?.host ?? ''];
    },
  },
  {
    names: ['monitor', 'mntr'],
    summary: 'the metrics, as mntr has them',
    *fields(source) {
      for (const { key, kind, value } of monitorValues(source, source.baseline)) {
        yield [key, kind === 'double' ? new JavaDouble(roundTo4(Number(value))) : value];
      }
    },
  },
  {
    names: ['observer_connection_stat_reset', 'orst'],
    summary: 'sets back the counters of the connections of observers',
    fields: () => [],
  },
  {
    names: ['observers', 'obsr'],
    summary: 'the observers of this leader',
    *fields({ view: { ensemble } }) {
      const synced = (ensemble?.learners() ?? []).filter((learner) => learner.isObserver && learner.isSynchronized);
      yield ['synced_observers', synced.length];
      yield ['observers', new JsonList(synced.map(({ serverId }) => new JsonFields([['sid', serverId]])))];
    },
  },
  { names: ['ruok'], summary: 'nothing: the process answers', needsNoServer: true, fields: () => [] },
  {
    names: ['server_stats', 'srvr'],
    summary: 'version, counts and latencies',
    fields: (source) => showServer(source),
  },
  {
    names: ['set_trace_mask', 'stmk'],
    summary: 'sets the trace mask: traceMask=<decimal>',
    needsNoServer: true,
    *fields({ traceMask }, query) {
      const text = query['traceMask'];
      if (text === undefined || !isLong(text)) {
        const problem = text === undefined ? '' : `, got ${text}`;
        yield [ERROR, `setTraceMask requires long traceMask argument${problem}`];
        return;
      }
      traceMask.value = BigInt(text);
      yield ['tracemask', traceMask.value];
    },
  },
  {
    names: ['stat_reset', 'srst'],
    summary: 'sets back the counters of the server',
    fields(source) {
      resetStats(source.view, source);
      return [];
    },
  },
  {
    names: ['stats', 'stat'],
    summary: 'as server_stats, with the connections',
    *fields(source) {
      yield* showServer(source);
      yield* showConnections(source.view, showConnectionBriefly);
    },
  },
  {
    names: ['system_properties', 'sysp'],
    summary: 'the environment of the process, sorted',
    needsNoServer: true,
    fields: () => listEnvironment().toSorted(([a], [b]) => (a < b ? -1 : 1)),
  },
  {
    names: ['voting_view'],
    summary: 'the voters',
    *fields(source) {
      const { ensemble } = source.view;
      const voters = (ensemble?.membership.members ?? []).filter(({ role }) => role === 'participant');
      yield [
        'current_config',
        new JsonFields(
          mapped(
            voters,
            (voter) => [String(voter.serverId), showVoter(voter, clientAddressOf(voter, source))] as const,
          ),
        ),
      ];
    },
  },
  {
    names: ['watch_summary', 'wchs'],
    summary: 'how many watches there are',
    *fields({ view }) {
      const { connections, paths, watches } = view.watches.summary();
      yield ['num_connections', connections];
      yield ['num_paths', paths];
      yield ['num_total_watches', watches];
    },
  },
  {
    names: ['watches', 'wchc'],
    summary: 'watched paths by session',
    *fields({ view }) {
      const watches = mapped(view.watches.bySession(), ([id, paths]) => [String(id), new JsonList(paths)] as const);
      yield ['session_id_to_watched_paths', new JsonFields(watches)];
    },
  },
  {
    names: ['watches_by_path', 'wchp'],
    summary: 'sessions that watch, by path',
    *fields({ view }) {
      const watches = mapped(view.watches.byPath(), ([path, ids]) => [path, new JsonList(ids)] as const);
      yield ['path_to_session_ids', new JsonFields(watches)];
    },
  },
  {
    names: ['zabstate'],
    summary: 'the part that this server has in its ensemble',
    needsNoServer: true,
    fields: showZabState,
  },
];

function* showServer({ view, metrics, configuration: { core } }: CommandSource): Fields {
  const { stats, ensemble } = view;
  const sizes = new JsonFields([
    ['last_buffer_size', stats.responseBytesLast],
    ['min_buffer_size', stats.responseBytesMin],
    ['max_buffer_size', stats.responseBytesMax],
  ]);
  yield ['version', FULL_VERSION];
  yield ['read_only', view.isReadOnly];
  yield [
    'server_stats',
    new JsonFields([
      ['packets_sent', stats.packetsSent],
      ['packets_received', stats.packetsReceived],
      ['fsync_threshold_exceed_count', metrics.syncsOverThreshold],
      ['client_response_stats', sizes],
      ['data_dir_size', measureDirectory(core.snapshotDirectory)],
      ['log_dir_size', measureDirectory(core.logDirectory)],
      ['provider_null', false],
      ['server_state', modeOf(view)],
      ['last_processed_zxid', view.lastZxid],
      ['outstanding_requests', view.outstandingRequests],
      ['avg_latency', new JavaDouble(roundTo4(stats.latencyAverage))],
      ['max_latency', Math.trunc(stats.latencyMax)],
      ['min_latency', Math.trunc(stats.latencyMin)],
      ['num_alive_client_connections', view.connectionCount],
      ['uptime', metrics.uptimeMs],
      ['auth_failed_count', stats.authFailures + metrics.certificateFailures],
      ['non_mtlsremote_conn_count', metrics.plainRemoteClients],
      ['non_mtlslocal_conn_count', metrics.plainLocalClients],
    ]),
  ];
  yield ['client_response', sizes];
  const proposals = ensemble?.proposalSizes ?? null;
  if (proposals !== null) {
    const { last, min, max } = proposals;
    yield [
      'proposal_stats',
      new JsonFields([
        ['last_buffer_size', last],
        ['min_buffer_size', min],
        ['max_buffer_size', max],
      ]),
    ];
  }
  yield ['node_count', view.znodeCount];
}

function* expiries(view: ServerView): Fields {
  const isLearner = view.ensemble !== null && view.ensemble.role !== 'leading';
  const times = new Map<number, bigint[]>();
  for (const { expiresAtWallMs, members } of [
    ...view.localSessionBuckets(),
    ...(isLearner ? [] : view.sessionBuckets()),
  ]) {
    const time = Math.trunc(expiresAtWallMs);
    times.set(time, [...(times.get(time) ?? []), ...members]);
  }
  for (const [time, members] of [...times].sort(([a], [b]) => a - b)) yield [String(time), new JsonList(members)];
}

function* ephemerals(view: ServerView): Fields {
  for (const id of view.sessionsWithEphemerals()) yield [String(id), new JsonList(view.ephemeralsOf(id))];
}

function showVoter({ addresses, role }: Member, clientAddress: string): JsonFields {
  return new JsonFields([
    ['server_addresses', new JsonList(addresses.map(({ host, quorumPort }) => `${host}:${quorumPort}`))],
    ['election_addresses', new JsonList(addresses.map(({ host, electionPort }) => `${host}:${electionPort}`))],
    ['client_address', clientAddress],
    ['learner_type', role],
  ]);
}

function* showZabState(source: CommandSource): Fields {
  const { ensemble, serverId, lastZxid } = source.view;
  if (ensemble === null) {
    yield ['voting', false];
    yield ['zabstate', ''];
    return;
  }
  const self = ensemble.membership.members.find((member) => member.serverId === serverId);
  yield ['myid', serverId];
  yield ['is_leader', ensemble.leader === serverId];
  yield [
    'quorum_address',
    showAddresses(self?.addresses.map(({ host, quorumPort }) => [host, quorumPort] as const) ?? []),
  ];
  yield [
    'election_address',
    showAddresses(self?.addresses.map(({ host, electionPort }) => [host, electionPort] as const) ?? []),
  ];
  yield ['client_address', self === undefined ? '' : clientAddressOf(self, source)];
  const isLooking = ensemble.role === 'looking';
  yield ['voting', !isLooking && self?.role === 'participant'];
  yield ['last_zxid', `0x${formatHex(lastZxid)}`];
  yield ['zab_epoch', Math.floor(lastZxid / EPOCH)];
  yield ['zab_counter', lastZxid % EPOCH];
  yield ['zabstate', isLooking ? 'election' : (peerStateOf(ensemble).split(' - ')[1] ?? '')];
}

/** Of another server the list of members may know it; of this one it is where it listens. */
function clientAddressOf({ serverId, client }: Member, { view, configuration, clientPort }: CommandSource): string {
  if (client !== null) return `${client.host}:${client.port}`;
  return serverId === view.serverId ? `${configuration.server.clientHost ?? '0.0.0.0'}:${clientPort()}` : '';
}

function showAddresses(addresses: readonly (readonly [host: string, port: number])[]): JsonFields {
  const texts = addresses.map(([host, port]) => `${host}:${port}`);
  const list = new JsonList(texts);
  const [one = ''] = texts;
  return new JsonFields([
    ['empty', texts.length === 0],
    ['all_addresses', list],
    ['all_reachable_addresses', list],
    ['one', one],
    ['reachable_address', one],
    ['wildcard_addresses', new JsonList(addresses.map(([, port]) => `0.0.0.0:${port}`))],
    ['all_ports', new JsonList(addresses.map(([, port]) => port))],
    ['all_host_strings', new JsonList(addresses.map(([host]) => host))],
    ['all_reachable_addresses_or_all', list],
    ['reachable_or_one', one],
  ]);
}

/** As Java's `Long.parseLong` reads it. */
function isLong(text: string): boolean {
  return /^[+-]?\d{1,40}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

/** When a file was written. */
function secondsOf(path: string): number {
  return Math.floor((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? -1) / 1000);
}

function roundTo4(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}

const EPOCH = 2 ** 32;
