import { existsSync } from 'node:fs';
import {
  type Authenticator,
  type ByteStream,
  type Disk,
  type MembershipStore,
  type PeerAddress,
  type Ports,
  ServerCore,
  type ServerView,
  type StreamEvents,
  type Trace,
} from '@meerkat/core';
import { makeFourLetterWords } from './admin/four-letter-words.ts';
import { makeHttpPorts } from './admin/http-ports.ts';
import { TraceMask } from './admin/trace-mask.ts';
import { AuditLog } from './audit/audit-log.ts';
import { makeAuthenticator } from './auth/authenticator.ts';
import { loadOwnProviders } from './auth/own-provider.ts';
import { SessionSecrets } from './auth/session-secrets.ts';
import { ClientPorts } from './client-ports.ts';
import type { Configuration } from './config/options.ts';
import { describeFailure } from './describe-failure.ts';
import { ExitCode, ServerError } from './exit-codes.ts';
import { GrowthWatch } from './growth-watch.ts';
import { HttpFigures } from './http/figures.ts';
import type { HttpThread } from './http/http-thread.ts';
import { Lifetime } from './lifetime.ts';
import { type Logger, SILENT_LOGGER } from './logger.ts';
import { type ClientAddress, ClientPortWatch } from './membership/client-port.ts';
import { copyMode } from './membership/copy-mode.ts';
import { DynamicFiles } from './membership/dynamic-files.ts';
import { Metrics } from './metrics/metrics.ts';
import { MonitorBaseline } from './metrics/monitor-baseline.ts';
import { NODE_CLOCK } from './node/clock.ts';
import { countPeerPorts, countThreads, Descriptors } from './node/descriptors.ts';
import { NodeDisk } from './node/disk.ts';
import type { HostedDisk } from './node/hosted-disk.ts';
import type { TlsListenOptions } from './node/network.ts';
import { PeerNetwork } from './node/peer-network.ts';
import { NodeRandom } from './node/random.ts';
import { makeNodeScans, type NodeScans } from './node/scans/node-scans.ts';
import { NodeSnapshotCodec } from './node/snapshot-codec.ts';
import { Turn } from './node/turn.ts';
import { QuorumWait } from './quorum-wait.ts';
import type { RunningServer, StartOptions } from './running-server.ts';
import { makePeerAuthentication } from './sasl/quorum-sasl.ts';
import { prepareTickets, QuorumTickets } from './sasl/quorum-tickets.ts';
import { SessionEnds } from './session-ends.ts';
import { StallWatch } from './stall-watch.ts';
import { ServerCredentials } from './tls/server-credentials.ts';
import { TraceLog } from './trace-log.ts';

/**
 * Starts one server: puts ports, core and listener together.
 *
 * The port is taken first, because that fails quickest; connections that come before the database is there are closed.
 *
 * @returns once clients are served; of a member of an ensemble, once its data is read and it looks for a leader
 * @throws ServerError when it cannot start; nothing is left behind then
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<RunningServer> {
  const own = await loadOwnProviders(configuration.server.auth.providerModules, options.logger ?? SILENT_LOGGER);
  const metrics = new Metrics(options.clock ?? NODE_CLOCK, configuration.core.syncWarningMs);
  const authenticator = makeAuthenticator(configuration.server.auth, own, metrics.ensembleAnswers);
  const server = new Server(configuration, options, authenticator, metrics);
  await server.start(options.signal);
  return server;
}

/** Milliseconds that clients get to close their ends after the last replies have left. */
const DRAIN_MS = 500;

class Server implements RunningServer {
  readonly #lifetime = new Lifetime();
  readonly #configuration: Configuration;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #turn: Turn;
  readonly #disk: HostedDisk;
  /** null: the core reads its files alone. */
  readonly #scans: NodeScans | null;
  readonly #descriptors: Descriptors;
  readonly #peerNetwork: PeerNetwork;
  readonly #core: ServerCore;
  readonly #quorumWait: QuorumWait;
  readonly #stallWatch: StallWatch;
  readonly #growthWatch: GrowthWatch;
  /** Null without a port that answers by HTTP. */
  readonly #http: HttpThread | null;
  readonly #clientPorts: ClientPorts;
  readonly #credentials: ServerCredentials;
  readonly #sessionSecrets: SessionSecrets | null = null;
  readonly #audit: AuditLog | null = null;
  readonly #sessionEnds = new SessionEnds();
  /** Resolves once all activity has ceased, after the end. */
  #atRest: Promise<void> = Promise.resolve();

  constructor(configuration: Configuration, options: StartOptions, authenticator: Authenticator, metrics: Metrics) {
    const { logger = SILENT_LOGGER, clock = NODE_CLOCK, trace, disk, decorateDisk, decorateNetwork } = options;
    this.#configuration = configuration;
    this.#logger = logger;
    this.#metrics = metrics;
    this.#turn = new Turn(clock, (error) => this.#onFailed(error));
    this.#disk = disk ?? new NodeDisk(this.#turn);
    const traceLog = new TraceLog(logger, clock);
    const onRefused = (remote: PeerAddress, reason: string): void => {
      traceLog.emit({ kind: 'connection-refused', remote, reason });
      trace?.emit({ kind: 'connection-refused', remote, reason });
    };
    const clientTlsEvents: TlsListenOptions['events'] = {
      onHandshakeFailed: (remote, reason, isAuthentication) => {
        this.#metrics.onHandshakeFailed(isAuthentication);
        onRefused(remote, reason);
      },
      onHandshakesExceeded: (remote, reason) => {
        this.#metrics.handshakesExceeded++;
        onRefused(remote, reason);
      },
    };
    this.#credentials = new ServerCredentials(configuration, logger);
    this.#descriptors = new Descriptors(
      countThreads(configuration.server),
      countPeerPorts(configuration.core),
      (message) => traceLog.emit({ kind: 'warning', message }),
    );
    const memberHosts = (): readonly string[] => this.view.ensemble?.hosts() ?? [];
    const { quorumSasl } = configuration.server;
    const tickets = quorumSasl?.credentials ?? null;
    this.#peerNetwork = new PeerNetwork(
      this.#turn,
      configuration.server.quorumListensOnAllIps,
      () => this.#descriptors.shareOfPeers(),
      this.#credentials.peerTls(memberHosts, onRefused),
      tickets instanceof QuorumTickets ? prepareTickets(tickets, (message) => logger.log('warn', message)) : null,
    );
    this.#stallWatch = new StallWatch(logger);
    this.#growthWatch = new GrowthWatch(configuration.server, {
      onGrowth: (refusal) => {
        const { limits } = this.#core;
        if ((refusal === null) !== (limits.growthRefusal === null)) {
          logger.log('warn', refusal ?? 'there is room again: creates and sets are carried out', { event: 'growth' });
        }
        limits.growthRefusal = refusal;
      },
    });
    this.#quorumWait = new QuorumWait(
      () => this.view.ensemble,
      configuration.core.serverId,
      (at) => this.#peerNetwork.failureAt(at),
      logger,
    );
    const listeners: Trace[] = [
      this.#metrics,
      traceLog,
      this.#sessionEnds,
      this.#quorumWait,
      new ClientPortWatch(configuration.core.serverId, clientAddressOf(configuration), (address) =>
        this.#clientPorts.move(address),
      ),
      { emit: ({ kind }) => (kind === 'role-changed' ? this.#lifetime.onStarted() : undefined) },
      ...(trace === undefined ? [] : [trace]),
    ];
    const deliver = (event: () => void): void => this.#turn.run(event);
    const { sessionSecrets } = configuration.server;
    if (sessionSecrets !== null) {
      this.#sessionSecrets = new SessionSecrets(sessionSecrets.path, sessionSecrets.rules, {
        onNotice: (message) => logger.log('info', message),
        onWarning: (message) => logger.log('warn', message),
      });
    }
    if (configuration.server.audit !== null) {
      this.#audit = new AuditLog(configuration.server.audit, (message) => logger.log('error', message));
      logger.log('info', 'the audit log is written', { event: 'audit-enabled' });
    }
    // A disk that is given need not have its data in files that a thread could open.
    this.#scans = disk === undefined && decorateDisk === undefined ? makeNodeScans(this.#turn) : null;
    const ports: Ports = {
      clock,
      random: new NodeRandom(),
      network: decorateNetwork?.(this.#peerNetwork, deliver) ?? this.#peerNetwork,
      disk: decorateDisk?.(this.#disk, deliver) ?? this.#disk,
      snapshotCodec: new NodeSnapshotCodec(this.#turn),
      scans: this.#scans,
      authenticator,
      audit: this.#audit,
      membershipStore: makeMembershipStore(configuration, disk ?? this.#disk),
      ...(this.#sessionSecrets === null ? {} : { sessionPasswords: this.#sessionSecrets }),
      peerAuthentication: quorumSasl === null ? null : makePeerAuthentication(quorumSasl, memberHosts),
      trace: {
        emit(event) {
          for (const listener of listeners) listener.emit(event);
        },
      },
    };
    const figures = new HttpFigures();
    const parts = {
      configuration,
      metrics: this.#metrics,
      baseline: new MonitorBaseline(),
      traceMask: new TraceMask(),
      clientPort: () => (configuration.server.clientPort === null ? -1 : this.address.port),
      secureClientPort: () => this.secureAddress?.port ?? -1,
      tls: () => ({
        handshakes: this.#clientPorts.handshakeCount,
        clientCertificateDays: this.#credentials.clientDaysLeft,
        quorumCertificateDays: this.#credentials.peerDaysLeft,
        adminCertificateDays: figures.adminDaysLeft,
        plainAdminConnections: figures.plainConnections,
        httpHandshakesFailed: figures.failedHandshakes,
        httpConnectionsExceeded: figures.exceededConnections,
      }),
    };
    const fourLetterWords = makeFourLetterWords(parts);
    this.#core = new ServerCore(
      ports,
      configuration.core,
      { fourLetterWords },
      {
        onServing: () => this.#lifetime.onServed(),
        onStopped: () => this.#lifetime.onStopped(),
        onFailed: (error) => this.#onFailed(error),
      },
    );
    this.#metrics.follow(this.#core.view.meters);
    this.#clientPorts = new ClientPorts({
      configuration,
      turn: this.#turn,
      logger,
      metrics: this.#metrics,
      descriptors: this.#descriptors,
      tlsSettings: () => this.#credentials.ofClients,
      tlsEvents: clientTlsEvents,
      onStream: (stream) => this.#onClient(stream),
    });
    this.#http = makeHttpPorts({
      configuration,
      source: { ...parts, view: this.view, lastSnapshot: () => this.#core.newestSnapshot() },
      health: {
        view: this.view,
        failure: () => this.#lifetime.failure?.message ?? null,
        isStopping: () => this.#lifetime.state === 'stopping',
        isDraining: () => this.#core.isDraining,
      },
      authenticator: ports.authenticator,
      core: this.#core,
      sessionEnds: this.#sessionEnds,
      audit: this.#audit,
      logger,
      figures,
      deliver,
    });
  }

  get failed(): Promise<ServerError> {
    return this.#lifetime.failed;
  }

  get serving(): Promise<void> {
    return this.#lifetime.served;
  }

  get address(): { readonly host: string; readonly port: number } {
    return this.#clientPorts.address;
  }

  get secureAddress(): { readonly host: string; readonly port: number } | null {
    return this.#clientPorts.secureAddress;
  }

  get view(): ServerView {
    return this.#core.view;
  }

  async start(signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#start(signal);
      this.#audit?.add({ operation: 'serverStart', result: 'success' });
    } catch (error) {
      this.#audit?.add({ operation: 'serverStart', result: 'failure' });
      await this.#audit?.flush();
      throw error;
    }
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    this.#checkDirectories();
    try {
      await this.#credentials.open({
        onClientsRenewed: (settings) => this.#clientPorts.renew(settings),
        onPeersRenewed: (settings) => this.#peerNetwork.renew(settings),
      });
      await this.#clientPorts.listen();
    } catch (error) {
      this.#credentials.stop();
      this.#clientPorts.close();
      await this.#clientPorts.stop();
      throw error;
    }
    this.#sessionSecrets?.start();
    this.#turn.start(this.#core, this.#disk);
    this.#core.start();
    this.#stallWatch.start();
    this.#growthWatch.start();
    this.#http?.start();
    const onAbort = (): void => {
      void this.stop().then(() => this.#rejectPending(new ServerError(ExitCode.ok, 'the start was aborted')));
    };
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#lifetime.started;
      this.#lifetime.beginServing();
    } catch (error) {
      await this.#atRest;
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async stop(): Promise<void> {
    if (this.#lifetime.beginStopping()) {
      this.resume();
      this.#audit?.add({ operation: 'serverStop', result: 'invoked' });
      this.#quorumWait.stop();
      this.#clientPorts.close();
      this.#turn.run(() => this.#core.stop());
    }
    await this.#lifetime.stopped;
    if (this.#lifetime.state !== 'ended') await this.#clientPorts.drain(DRAIN_MS);
    this.#end();
    this.#lifetime.onNeverServed(new ServerError(ExitCode.ok, 'the server was stopped'));
    await this.#audit?.flush();
    await this.#atRest;
  }

  async kill(): Promise<void> {
    this.#end();
    this.#rejectPending(new ServerError(ExitCode.unexpected, 'the server was killed'));
    await this.#atRest;
  }

  pause(): void {
    this.#turn.freeze();
    this.#clientPorts.freeze();
    this.#peerNetwork.freeze();
  }

  resume(): void {
    if (!this.#turn.isFrozen) return;
    this.#turn.thaw();
    this.#clientPorts.thaw();
    this.#peerNetwork.thaw();
  }

  async expireSession(id: bigint): Promise<boolean> {
    const { state } = this.#lifetime;
    if (state !== 'serving') throw new ServerError(ExitCode.unexpected, `the server is ${state}`);
    const isKnown = await new Promise<boolean>((resolve, reject) => {
      const forget = this.#sessionEnds.onNext(id, (error) => (error === null ? resolve(true) : reject(error)));
      this.#turn.run(() => {
        if (this.#core.expireSession(id)) return;
        forget();
        resolve(false);
      });
    });
    if (!isKnown) return false;
    await this.#turn.ended();
    return true;
  }

  #checkDirectories(): void {
    const { createsDirectories, dataDirectory, dataLogDirectory } = this.#configuration.server;
    if (createsDirectories) return;
    for (const directory of [dataDirectory, dataLogDirectory]) {
      if (existsSync(directory)) continue;
      const message = `the data directory ${directory} does not exist and datadir.autocreate is off: create it, or correct dataDir`;
      throw new ServerError(ExitCode.dataDirectory, message);
    }
  }

  #onClient(stream: ByteStream): StreamEvents {
    if (this.#credentials.ofClients !== null && stream.isSecure !== true) {
      this.#metrics.onPlainClient(stream.remote.ip);
    }
    return this.#core.onStreamOpened(stream);
  }

  /** The core reported a failure, or threw. */
  #onFailed(error: unknown): void {
    const { state } = this.#lifetime;
    if (state === 'ended') return;
    const isStart = state === 'starting';
    const failure = describeFailure(error, isStart ? this.#configuration.server : null);
    if (!isStart) this.#logger.log('error', `the server stops: ${failure.message}`, { event: 'stopping' });
    this.#lifetime.fail(failure);
    this.#end();
    this.#sessionEnds.fail(failure);
  }

  /** Nothing moves after this. */
  #end(): void {
    if (!this.#lifetime.end()) return;
    this.#quorumWait.stop();
    this.#stallWatch.stop();
    this.#growthWatch.stop();
    this.#sessionSecrets?.stop();
    this.#credentials.stop();
    this.#turn.stop();
    this.#clientPorts.close();
    this.#clientPorts.destroyAll();
    this.#peerNetwork.destroyAll();
    this.#scans?.stop();
    this.#atRest = Promise.all([this.#disk.abandon(), this.#http?.stop(), this.#clientPorts.stop()]).then(() => {});
  }

  /** Rejects all pending waits. */
  #rejectPending(reason: ServerError): void {
    this.#lifetime.rejectPending(reason);
    this.#sessionEnds.fail(reason);
  }
}

function clientAddressOf({ server: { clientHost, clientPort } }: Configuration): ClientAddress | null {
  return clientPort === null ? null : { host: clientHost, port: clientPort };
}

function makeMembershipStore({ core, server }: Configuration, disk: Disk): MembershipStore | null {
  const { staticFile } = server;
  if (!core.reconfigEnabled || core.ensemble === null || staticFile === null) return null;
  return new DynamicFiles(disk, { serverId: core.serverId, staticFile, copyMode });
}
