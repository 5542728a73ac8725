import { Histogram, type LearnerMeter, type QuotaUse, type ServerView } from '@meerkat/core';
import { countLearners, countVoters } from '../admin/roles.ts';
import { countOpenFiles, readOpenFilesMax } from '../node/descriptors.ts';
import type { Metrics } from './metrics.ts';

/**
 * ZooKeeper's metrics: each of its names, what it is, and where its value comes from. `mntr`, the admin command `monitor`
 * and the page for Prometheus are written from these tables.
 *
 * Names that measure what this server does not have (queues between threads, caches of replies, the cleaner of dead
 * watchers, the JVM) are there all the same, since dashboards and alerts ask for them: a counter is 0, a summary empty.
 */
export interface MetricsSource {
  readonly view: ServerView;
  readonly metrics: Metrics;
  tls(): TlsFigures;
}

/** The source of the metrics of TLS and of the HTTP ports. */
export interface TlsFigures {
  /** Connections of clients whose handshake is not done. */
  readonly handshakes: number;
  /** Days until a certificate that clients are shown expires; null without TLS. */
  readonly clientCertificateDays: number | null;
  /** The same of those that other servers are shown. */
  readonly quorumCertificateDays: number | null;
  /** The same of those that administrators are shown. */
  readonly adminCertificateDays: number | null;
  /** Connections without TLS to an admin port that has it. */
  readonly plainAdminConnections: number;
  /** Handshakes of the ports for HTTP that failed. */
  readonly httpHandshakesFailed: number;
  /** Connections of these ports that were closed because there were too many. */
  readonly httpConnectionsExceeded: number;
}

export interface Gauge {
  readonly name: string;
  /** Java has it as a double: 1 is shown as `1.0`. */
  readonly isDouble?: true;
  /** null: this server does not have it in its role. */
  value(source: MetricsSource): number | null;
  /** True where ZooKeeper has it without a value, too: the page for Prometheus says 0, and `mntr` nothing. */
  isZeroWithout?(source: MetricsSource): boolean;
}

export interface Counter {
  readonly name: string;
  value(source: MetricsSource): number;
}

export interface Summary {
  readonly name: string;
  /** More quantiles than the middle one. */
  readonly isAdvanced: boolean;
  /** By what values of the histogram are divided: 1000 where it holds microseconds. */
  readonly divisor: number;
  histogram(source: MetricsSource): Histogram;
}

/** A number, or a histogram, for each of some keys: namespaces, servers. */
export interface GaugeSet {
  readonly name: string;
  members(source: MetricsSource): Iterable<readonly [key: string, value: number]>;
}

export interface SummarySet {
  readonly name: string;
  readonly isAdvanced: boolean;
  readonly divisor: number;
  members(source: MetricsSource): Iterable<readonly [key: string, histogram: Histogram]>;
}

/** What measures parts that there are not in this server, or not yet: these stay 0 or empty. */
const ABSENT_COUNTERS: readonly string[] = [
  'quit_leading_due_to_disloyal_voter',
  'outstanding_changes_queued',
  'outstanding_changes_removed',
  'stale_replies',
  'response_packet_cache_hits',
  'response_packet_cache_misses',
  'response_packet_get_children_cache_hits',
  'response_packet_get_children_cache_misses',
  'cnxn_closed_without_zk_server_running',
  'skip_learner_request_to_next_processor_count',
  'requests_not_forwarded_to_commit_processor',
  'add_dead_watcher_stall_time',
  'dead_watchers_queued',
  'dead_watchers_cleared',
];
const ABSENT_SUMMARIES: readonly string[] = [
  'prep_processor_queue_size',
  'prep_process_time',
  'proposal_process_time',
  'sync_processor_queue_size',
  'sync_process_time',
  'read_commit_proc_req_queued',
  'write_commit_proc_req_queued',
  'commit_commit_proc_req_queued',
  'read_commit_proc_issued',
  'write_commit_proc_issued',
  'requests_in_session_queue',
  'pending_session_queue_size',
  'reads_after_write_in_session_queue',
  'reads_issued_from_session_queue',
  'session_queues_drained',
  'time_waiting_empty_pool_in_commit_processor_read_ms',
  'write_batch_time_in_commit_processor',
  'concurrent_request_processing_in_commit_processor',
  'commit_process_time',
  'learner_request_processor_queue_size',
  'netty_queued_buffer_capacity',
  'socket_closing_time',
];
const ABSENT_ADVANCED_SUMMARIES: readonly string[] = [
  'om_proposal_process_time_ms',
  'om_commit_process_time_ms',
  'prep_processor_queue_time_ms',
  'close_session_prep_time',
  'sync_processor_queue_time_ms',
  'sync_processor_queue_and_flush_time_ms',
  'read_commitproc_time_ms',
  'write_commitproc_time_ms',
  'local_write_committed_time_ms',
  'server_write_committed_time_ms',
  'read_final_proc_time_ms',
  'write_final_proc_time_ms',
  'dead_watchers_cleaner_latency',
  'jvm_pause_time_ms',
];
export const ABSENT: readonly string[] = [...ABSENT_COUNTERS, ...ABSENT_SUMMARIES, ...ABSENT_ADVANCED_SUMMARIES];

/** Of what never happens here. */
const NEVER = new Histogram();

/** Those of ZooKeeper 3.4 first: collectors of that time read no further than 4096 bytes. */
export const GAUGES: readonly Gauge[] = [
  gauge('avg_latency', ({ view }) => view.stats.latencyAverage, true),
  gauge('max_latency', ({ view }) => Math.trunc(view.stats.latencyMax)),
  gauge('min_latency', ({ view }) => Math.trunc(view.stats.latencyMin)),
  gauge('packets_received', ({ view }) => view.stats.packetsReceived),
  gauge('packets_sent', ({ view }) => view.stats.packetsSent),
  gauge('num_alive_connections', ({ view }) => view.connectionCount),
  gauge('outstanding_requests', ({ view }) => view.outstandingRequests),
  gauge('znode_count', ({ view }) => view.znodeCount),
  gauge('watch_count', ({ view }) => view.watches.count),
  gauge('ephemerals_count', ({ view }) => view.ephemeralCount),
  gauge('approximate_data_size', ({ view }) => view.approximateDataSize),
  // -1 where it is unknown, as in Java's server.
  gauge('open_file_descriptor_count', () => countOpenFiles() ?? -1),
  gauge('max_file_descriptor_count', () => readOpenFilesMax() ?? -1),
  ofLeader('learners', (leader) => leader.learners.all),
  ofLeader('synced_followers', (leader) => leader.learners.syncedFollowers),
  ofLeader('pending_syncs', (leader) => leader.pendingSyncs),
  gauge('uptime', ({ metrics }) => metrics.uptimeMs),
  gauge('global_sessions', ({ view }) => view.sessionCount),
  gauge('local_sessions', ({ view }) => view.localSessionCount ?? 0),
  gauge('connection_drop_probability', ({ view }) => view.meters.connectDropChance, true),
  gauge('last_client_response_size', ({ view }) => view.stats.responseBytesLast),
  gauge('max_client_response_size', ({ view }) => view.stats.responseBytesMax),
  gauge('min_client_response_size', ({ view }) => view.stats.responseBytesMin),
  gauge('auth_failed_count', ({ view, metrics }) => view.stats.authFailures + metrics.certificateFailures),
  gauge('outstanding_tls_handshake', ({ tls }) => tls().handshakes),
  gauge('ssl_certificate_days_left', ({ tls }) => tls().clientCertificateDays),
  gauge('ssl_quorum_certificate_days_left', ({ tls }) => tls().quorumCertificateDays),
  gauge('ssl_admin_certificate_days_left', ({ tls }) => tls().adminCertificateDays),
  // Apache counts connections to a port that does not ask for certificates here, which is not done.
  gauge('non_mtls_remote_conn_count', ({ metrics }) => metrics.plainRemoteClients),
  gauge('non_mtls_local_conn_count', ({ metrics }) => metrics.plainLocalClients),
  gauge('quorum_size', ({ view }) => (view.ensemble === null ? null : countVoters(view.ensemble.membership))),
  ofLeader('synced_non_voting_followers', (leader) => leader.learners.syncedNonVotingFollowers),
  {
    name: 'synced_observers',
    // Of a follower, while it feeds observers.
    value({ view: { ensemble } }) {
      const hasObservers = ensemble !== null && (ensemble.proposalSizes !== null || ensemble.feedsObservers);
      return hasObservers ? countLearners(ensemble).syncedObservers : null;
    },
    isZeroWithout: ({ view: { ensemble } }) => ensemble?.role === 'following',
  },
  ofLeader('leader_uptime', (_leader, { metrics }) => metrics.leaderUptimeMs),
  ofLeader('last_proposal_size', (leader) => leader.proposalSizes.last),
  ofLeader('max_proposal_size', (leader) => leader.proposalSizes.max),
  ofLeader('min_proposal_size', (leader) => leader.proposalSizes.min),
];

function refused(view: ServerView, limit: string): number {
  for (const [name, count] of view.refusals()) if (name === limit) return count;
  return 0;
}

export const COUNTERS: readonly Counter[] = [
  counter('connection_rejected', ({ view }) => {
    return view.stats.connectionsRefused + refused(view, 'connects') + refused(view, 'sessions');
  }),
  counter('throttled_ops', ({ view }) => {
    return refused(view, 'watches') + refused(view, 'growth') + refused(view, 'late-requests');
  }),
  counter('ensemble_auth_success', ({ metrics }) => metrics.ensembleAnswers.success),
  counter('ensemble_auth_fail', ({ metrics }) => metrics.ensembleAnswers.fail),
  counter('ensemble_auth_skip', ({ metrics }) => metrics.ensembleAnswers.skip),
  counter('request_throttle_wait_count', ({ view }) => view.meters.throttleWaits),
  counter('stale_requests', ({ view }) => view.meters.staleRequests),
  counter('stale_requests_dropped', ({ view }) => view.meters.staleRequestsDropped),
  counter('large_requests_rejected', ({ view }) => refused(view, 'large-requests')),
  counter('unrecoverable_error_count', ({ metrics }) => metrics.unrecoverableErrors),
  counter('connection_request_count', ({ metrics }) => metrics.connectRequests),
  counter('connection_drop_count', ({ metrics }) => metrics.connectionsDropped),
  counter('connection_revalidate_count', ({ view }) => view.meters.reconnections),
  counter('revalidate_count', ({ view }) => view.meters.revalidations),
  counter('sessionless_connections_expired', ({ view }) => view.meters.sessionlessExpired),
  counter('stale_sessions_expired', ({ metrics }) => metrics.sessionsExpired),
  counter('bytes_received_count', ({ metrics }) => metrics.bytesReceived),
  counter('response_bytes', ({ view }) => view.meters.sentBytes - view.meters.eventBytes),
  counter('watch_bytes', ({ view }) => view.meters.eventBytes),
  counter('digest_mismatches_count', ({ metrics }) => metrics.digestMismatches),
  counter('looking_count', ({ metrics }) => metrics.lookings),
  counter('diff_count', ({ metrics }) => metrics.diffs),
  counter('snap_count', ({ metrics }) => metrics.snaps),
  counter('proposal_count', ({ metrics }) => metrics.proposals),
  counter('commit_count', ({ metrics }) => metrics.commits),
  counter('learner_proposal_received_count', ({ view }) => view.meters.proposalsReceived),
  counter('learner_commit_received_count', ({ metrics }) => metrics.commitsReceived),
  counter('prep_processor_request_queued', ({ view }) => view.meters.prepared),
  counter('sync_processor_request_queued', ({ metrics }) => metrics.batch.sum),
  counter('request_commit_queued', ({ view }) => view.meters.applied),
  counter('unsuccessful_handshake', ({ metrics, tls }) => metrics.handshakesFailed + tls().httpHandshakesFailed),
  counter('insecure_admin_count', ({ tls }) => tls().plainAdminConnections),
  counter('tls_handshake_exceeded', ({ metrics }) => metrics.handshakesExceeded),
  counter('snapshot_error_count', ({ metrics }) => metrics.snapshotErrors),
  counter('snapshot_rate_limited_count', ({ metrics }) => metrics.snapshotsRateLimited),
  counter('restore_error_count', ({ metrics }) => metrics.restoreErrors),
  counter('restore_rate_limited_count', ({ metrics }) => metrics.restoresRateLimited),
  ...ABSENT_COUNTERS.map((name) => counter(name, () => 0)),
];

export const SUMMARIES: readonly Summary[] = [
  micros('fsynctime', ({ metrics }) => metrics.fsync),
  micros('snapshottime', ({ metrics }) => metrics.snapshot),
  micros('restore_time', ({ metrics }) => metrics.restore),
  micros('dbinittime', ({ metrics }) => metrics.databaseInit),
  micros('startup_snap_load_time', ({ metrics }) => metrics.snapshotLoad),
  micros('startup_txns_load_time', ({ metrics }) => metrics.replay),
  plain('startup_txns_loaded', ({ metrics }) => metrics.txnsReplayed),
  micros('election_time', ({ metrics }) => metrics.election),
  micros('unavailable_time', ({ metrics }) => metrics.unavailable),
  micros('leader_unavailable_time', ({ metrics }) => metrics.leaderUnavailable),
  micros('follower_sync_time', ({ metrics }) => metrics.followerSync),
  micros('observer_sync_time', ({ metrics }) => metrics.observerSync),
  plain('inflight_snap_count', ({ metrics }) => metrics.snapsInFlight),
  plain('inflight_diff_count', ({ metrics }) => metrics.diffsInFlight),
  plain('node_created_watch_count', ({ view }) => view.watches.fired.created),
  plain('node_deleted_watch_count', ({ view }) => view.watches.fired.deleted),
  plain('node_changed_watch_count', ({ view }) => view.watches.fired.dataChanged),
  plain('node_children_watch_count', ({ view }) => view.watches.fired.childrenChanged),
  plain('sync_processor_batch_size', ({ metrics }) => metrics.batch),
  plain('connection_token_deficit', ({ view }) => view.meters.tokenDeficit),
  ...ABSENT_SUMMARIES.map((name) => plain(name, () => NEVER)),
  micros('readlatency', ({ view }) => view.meters.reads, true),
  micros('updatelatency', ({ view }) => view.meters.updates, true),
  plain('propagation_latency', ({ view }) => view.meters.propagation, true),
  plain('proposal_latency', ({ view }) => view.meters.proposalDelay, true),
  plain('proposal_ack_creation_latency', ({ view }) => view.meters.ackDelay, true),
  plain('commit_propagation_latency', ({ view }) => view.meters.commitDelay, true),
  micros('quorum_ack_latency', ({ metrics }) => metrics.quorumAck, true),
  micros('sync_processor_queue_flush_time_ms', ({ metrics }) => metrics.fsync, true),
  plain('request_throttle_queue_time_ms', ({ view }) => view.meters.throttleWait, true),
  ...ABSENT_ADVANCED_SUMMARIES.map((name) => plain(name, () => NEVER, true)),
];

export const COUNTER_SETS: readonly GaugeSet[] = [
  { name: 'quota_exceeded_error_per_namespace', members: ({ metrics }) => metrics.quotaExceeded },
];

export const SUMMARY_SETS: readonly SummarySet[] = [
  { name: 'read_per_namespace', isAdvanced: false, divisor: 1, members: (source) => namespaces(source, 'read') },
  { name: 'write_per_namespace', isAdvanced: false, divisor: 1, members: (source) => namespaces(source, 'written') },
  ofServers('learner_handler_qp_size', false, 1, (meter) => meter.queueLength),
  ofServers('learner_handler_qp_time_ms', true, 1000, (meter) => meter.queueTime),
  ofServers('ack_latency', true, 1000, (meter) => meter.ackLatency),
];

/** QuotaMetricsUtils: sums of the quotas in a namespace. */
export const GAUGE_SETS: readonly GaugeSet[] = [
  { name: 'quota_count_limit_per_namespace', members: ({ view }) => quotaSums(view, 'countLimit') },
  { name: 'quota_bytes_limit_per_namespace', members: ({ view }) => quotaSums(view, 'bytesLimit') },
  { name: 'quota_count_usage_per_namespace', members: ({ view }) => quotaSums(view, 'count') },
  { name: 'quota_bytes_usage_per_namespace', members: ({ view }) => quotaSums(view, 'bytes') },
];

function gauge(name: string, value: Gauge['value'], isDouble = false): Gauge {
  return isDouble ? { name, isDouble, value } : { name, value };
}

interface LeaderSource {
  readonly learners: ReturnType<typeof countLearners>;
  readonly proposalSizes: { readonly last: number; readonly min: number; readonly max: number };
  readonly pendingSyncs: number;
}

function ofLeader(name: string, value: (leader: LeaderSource, source: MetricsSource) => number): Gauge {
  return {
    name,
    value(source) {
      const { ensemble } = source.view;
      if (ensemble === null || ensemble.proposalSizes === null) return null;
      const { proposalSizes, pendingSyncs } = ensemble;
      return value({ learners: countLearners(ensemble), proposalSizes, pendingSyncs }, source);
    },
  };
}

function counter(name: string, value: Counter['value']): Counter {
  return { name, value };
}

function micros(name: string, histogram: Summary['histogram'], isAdvanced = false): Summary {
  return { name, isAdvanced, divisor: 1000, histogram };
}

function plain(name: string, histogram: Summary['histogram'], isAdvanced = false): Summary {
  return { name, isAdvanced, divisor: 1, histogram };
}

/** Clients choose how many quotas there are; a page shows the first of them. */
const QUOTAS_MAX = 1000;

function quotaSums(view: ServerView, what: Exclude<keyof QuotaUse, 'path'>): Map<string, number> {
  const sums = new Map<string, number>();
  let left = QUOTAS_MAX;
  for (const use of view.quotas()) {
    if (left-- === 0) break;
    const namespace = use.path.split('/', 2)[1] ?? '';
    sums.set(namespace, (sums.get(namespace) ?? 0) + use[what]);
  }
  return sums;
}

/** What a leader has measured of each server. */
function ofServers(
  name: string,
  isAdvanced: boolean,
  divisor: number,
  histogram: (meter: LearnerMeter) => Histogram,
): SummarySet {
  return {
    name,
    isAdvanced,
    divisor,
    *members({ view }) {
      for (const [serverId, meter] of view.meters.learners.entries()) {
        if (histogram(meter).count > 0) yield [String(serverId), histogram(meter)];
      }
    },
  };
}

function* namespaces({ view }: MetricsSource, what: 'read' | 'written'): Iterable<readonly [string, Histogram]> {
  for (const meter of view.meters.namespaces.values()) if (meter[what].count > 0) yield [meter.name, meter[what]];
}
