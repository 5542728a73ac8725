import type { EnsembleView, ServerView } from '@meerkat/core';
import type { Metrics } from '../metrics.ts';
import { countOpenFiles, readOpenFilesMax } from '../node/descriptors.ts';
import { FULL_VERSION } from '../version.ts';
import { formatDouble } from './java-text.ts';
import { countLearners, countVoters, modeOf, peerStateOf } from './roles.ts';

/** What `mntr` tells about TLS. */
export interface TlsFigures {
  /** Connections of clients whose handshake is not done. */
  readonly handshakes: number;
  /** Days until a certificate that clients are shown expires; null without TLS. */
  readonly clientCertificateDays: number | null;
}

/**
 * `mntr`: every metric of ZooKeeper that has a true value here, under its name.
 *
 * What is left out measures parts that this server does not have: thread pools and their queues, response caches,
 * the dead-watcher cleaner. The page docs/four-letter-words.md lists them.
 */
export function formatMonitor(view: ServerView, metrics: Metrics, tls: TlsFigures): string {
  const lines: string[] = [];
  const put = (key: string, value: number | string): void => {
    lines.push(`zk_${key}\t${value}`);
  };
  put('version', FULL_VERSION);
  put('server_state', modeOf(view));
  if (view.ensemble !== null) {
    put('peer_state', peerStateOf(view.ensemble));
    if (view.ensemble.role === 'observing') put('observer_master_id', view.ensemble.leader ?? -1);
    for (const [key, value] of quorumGauges(view.ensemble, metrics)) put(key, value);
  }
  for (const [key, value] of gauges(view, metrics, tls)) put(key, value);
  put('connection_rejected', view.stats.connectionsRefused);
  put('unrecoverable_error_count', 0);
  for (const [name, value] of Object.entries(metrics.counters)) put(name, value);
  for (const [name, summary] of Object.entries(metrics.summaries)) {
    put(`avg_${name}`, formatDouble(summary.average));
    put(`min_${name}`, summary.min);
    put(`max_${name}`, summary.max);
    put(`cnt_${name}`, summary.count);
    put(`sum_${name}`, summary.sum);
  }
  for (const [namespace, count] of metrics.quotaExceeded) put(`${namespace}_quota_exceeded_error_per_namespace`, count);
  return `${lines.join('\n')}\n`;
}

function* gauges(view: ServerView, metrics: Metrics, tls: TlsFigures): Generator<readonly [string, number | string]> {
  const { stats } = view;
  yield ['avg_latency', formatDouble(stats.latencyAverage)];
  yield ['max_latency', Math.trunc(stats.latencyMax)];
  yield ['min_latency', Math.trunc(stats.latencyMin)];
  yield ['packets_received', stats.packetsReceived];
  yield ['packets_sent', stats.packetsSent];
  yield ['num_alive_connections', view.connectionCount];
  yield ['outstanding_requests', view.outstandingRequests];
  yield ['uptime', metrics.uptimeMs];
  yield ['znode_count', view.znodeCount];
  yield ['watch_count', view.watches.count];
  yield ['ephemerals_count', view.ephemeralCount];
  yield ['approximate_data_size', view.approximateDataSize];
  yield ['global_sessions', view.sessionCount];
  yield ['local_sessions', 0];
  const openFiles = countOpenFiles();
  if (openFiles !== null) yield ['open_file_descriptor_count', openFiles];
  const openFilesMax = readOpenFilesMax();
  if (openFilesMax !== null) yield ['max_file_descriptor_count', openFilesMax];
  yield ['last_client_response_size', stats.responseBytesLast];
  yield ['max_client_response_size', stats.responseBytesMax];
  yield ['min_client_response_size', stats.responseBytesMin];
  yield ['auth_failed_count', stats.authFailures + metrics.certificateFailures];
  // Nothing is dropped by throttling.
  yield ['connection_drop_probability', '0.0'];
  yield ['outstanding_tls_handshake', tls.handshakes];
  if (tls.clientCertificateDays !== null) yield ['ssl_certificate_days_left', tls.clientCertificateDays];
  // Apache counts connections to a port that does not ask for certificates here, which is not done.
  yield ['non_mtls_remote_conn_count', 0];
  yield ['non_mtls_local_conn_count', 0];
}

function* quorumGauges(ensemble: EnsembleView, metrics: Metrics): Generator<readonly [string, number]> {
  yield ['quorum_size', countVoters(ensemble.membership)];
  const { proposalSizes } = ensemble;
  if (proposalSizes === null) return;
  const learners = countLearners(ensemble);
  yield ['learners', learners.all];
  yield ['synced_followers', learners.syncedFollowers];
  yield ['synced_non_voting_followers', learners.syncedNonVotingFollowers];
  yield ['synced_observers', learners.syncedObservers];
  yield ['leader_uptime', metrics.leaderUptimeMs];
  yield ['last_proposal_size', proposalSizes.last];
  yield ['max_proposal_size', proposalSizes.max];
  yield ['min_proposal_size', proposalSizes.min];
}
