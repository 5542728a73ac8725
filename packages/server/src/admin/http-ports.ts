import { stat } from 'node:fs/promises';
import type { Authenticator, ServerCore, SnapshotFile } from '@meerkat/core';
import type { AuditLog } from '../audit/audit-log.ts';
import type { Configuration } from '../config/options.ts';
import type { HttpFigures } from '../http/figures.ts';
import { HttpThread } from '../http/http-thread.ts';
import type { ConsolePlace, MetricsPlace } from '../http/messages.ts';
import type { MetricsPortOptions } from '../http/options.ts';
import type { Logger } from '../logger.ts';
import { Exposition } from '../metrics/exposition.ts';
import { LoopDelay } from '../metrics/loop-delay.ts';
import { NODE_CLOCK } from '../node/clock.ts';
import type { SessionEnds } from '../session-ends.ts';
import { AdminAudit } from './admin-audit.ts';
import { ArchiveCommand } from './archive-command.ts';
import { AdminAuthorization } from './authorization.ts';
import type { CommandSource } from './commands.ts';
import { DrainCommand } from './drain-command.ts';
import { END_CONFIRM_MS, EndSessionCommand } from './end-session-command.ts';
import type { HealthSource } from './health.ts';
import { AdminDesk } from './question-handler.ts';
import { RestoreCommand } from './restore-command.ts';
import { SnapshotCommand, type TakenSnapshot } from './snapshot-command.ts';

export interface HttpPortsParts {
  readonly configuration: Configuration;
  readonly source: CommandSource;
  readonly health: HealthSource;
  readonly authenticator: Authenticator;
  readonly core: Pick<
    ServerCore,
    'takeSnapshot' | 'restore' | 'shed' | 'isDraining' | 'setDraining' | 'expireSession' | 'endsSessions' | 'view'
  >;
  readonly sessionEnds: SessionEnds;
  readonly audit: AuditLog | null;
  readonly logger: Logger;
  /** What the thread counts. */
  readonly figures: HttpFigures;
  /** Gives the core an event, in a turn of its own. */
  deliver(event: () => void): void;
}

/** The ports that answer by HTTP, not open yet; null when the configuration has none. */
export function makeHttpPorts(parts: HttpPortsParts): HttpThread | null {
  const { configuration, source, logger } = parts;
  const { admin, metricsPort, showsProcessMetrics } = configuration.server;
  if (admin === null && metricsPort === null) return null;
  const desk = new AdminDesk({
    source,
    health: parts.health,
    exposition: new Exposition(source, new LoopDelay(), showsProcessMetrics),
    snapshot: makeSnapshotCommand(parts),
    restore: makeRestoreCommand(parts),
    archive: makeArchiveCommand(parts),
    drain: new DrainCommand({
      authorization: authorizationOf(parts),
      core: parts.core,
      audit: auditOf(parts),
      logger,
      deliver: (event) => parts.deliver(event),
    }),
    endSession: new EndSessionCommand({
      authorization: authorizationOf(parts),
      core: parts.core,
      sessionEnds: parts.sessionEnds,
      audit: auditOf(parts),
      logger,
      confirmMs: END_CONFIRM_MS,
      deliver: (event) => parts.deliver(event),
    }),
    commandUrl: admin?.commandUrl ?? '',
  });
  const data = {
    admin:
      admin === null
        ? null
        : {
            host: admin.host,
            port: admin.port,
            commandUrl: admin.commandUrl,
            idleTimeoutMs: admin.idleTimeoutMs,
            tls: admin.tls,
          },
    metrics: metricsPort === null ? [] : metricsPlaces(metricsPort),
    figures: parts.figures.buffer,
  };
  return new HttpThread(data, desk, logger, () => consolePlace(parts));
}

/** One port, or two, for Prometheus. */
function metricsPlaces({ host, port, secure }: MetricsPortOptions): readonly MetricsPlace[] {
  const tls = secure === null ? null : { options: secure.options, isUnified: secure.port === port };
  const places: MetricsPlace[] = [];
  if (port !== null) places.push({ name: 'metrics', host, port, tls: tls?.isUnified === true ? tls : null });
  if (secure !== null && tls?.isUnified === false) {
    places.push({ name: 'secure-metrics', host, port: secure.port, tls });
  }
  return places;
}

/** Known once the clients' port is open. A console in the same process needs no TLS to reach it, and gets none. */
function consolePlace({ configuration, source, logger }: HttpPortsParts): ConsolePlace | null {
  const { admin, clientPort, clientHost } = configuration.server;
  if (admin?.consoleEnabled !== true) return null;
  if (clientPort === null) {
    const text = 'the console is not there: it reaches its server at clientPort, and there is a secureClientPort alone';
    logger.log('warn', text, { event: 'http-failed' });
    return null;
  }
  const { snapshotDirectory, logDirectory } = configuration.core;
  const isAnywhere = clientHost === null || clientHost === '0.0.0.0' || clientHost === '::';
  return {
    service: { host: isAnywhere ? '127.0.0.1' : clientHost, port: source.clientPort() },
    isWritable: admin.consoleIsWritable,
    files: { snapshotDirectory, logDirectory },
  };
}

function makeSnapshotCommand(parts: HttpPortsParts): SnapshotCommand {
  const { configuration, source, core, deliver } = parts;
  const { admin } = configuration.server;
  const { view, metrics } = source;
  return new SnapshotCommand({
    isEnabled: admin?.snapshotEnabled ?? false,
    // ZooKeeper takes the number of milliseconds for microseconds here.
    intervalMs: (admin?.rateLimitMs ?? 0) / 1000,
    authorization: authorizationOf(parts),
    metrics,
    isServing: () => view.isServing,
    monotonicMs: () => NODE_CLOCK.monotonicMs(),
    async take(): Promise<TakenSnapshot> {
      const { path, zxid } = await new Promise<SnapshotFile>((resolve, reject) => {
        const onTaken = (snapshot: SnapshotFile | null): void =>
          snapshot === null ? reject(new Error('no snapshot could be taken')) : resolve(snapshot);
        deliver(() => core.takeSnapshot(onTaken));
      });
      // It may be compressed.
      return { path, zxid, bytes: (await stat(path)).size };
    },
  });
}

function makeRestoreCommand(parts: HttpPortsParts): RestoreCommand {
  const { configuration, source, core, logger } = parts;
  const { admin, diskFreeBytesMin } = configuration.server;
  return new RestoreCommand({
    isEnabled: admin?.restoreEnabled ?? false,
    bytesMax: admin?.restoreBytesMax ?? 0,
    isOfEnsemble: configuration.core.ensemble !== null,
    intervalMs: admin?.rateLimitMs ?? 0,
    snapshotDirectory: configuration.core.snapshotDirectory,
    diskFreeBytesMin,
    authorization: authorizationOf(parts),
    audit: auditOf(parts),
    metrics: source.metrics,
    logger,
    core,
    isServing: () => source.view.isServing,
    monotonicMs: () => NODE_CLOCK.monotonicMs(),
    deliver: (event) => parts.deliver(event),
  });
}

function authorizationOf({ configuration, source, authenticator }: HttpPortsParts): AdminAuthorization {
  const { skipAcl } = configuration.core;
  const usesForwardedFor = configuration.server.admin?.usesForwardedFor ?? false;
  return new AdminAuthorization({ view: source.view, authenticator, skipAcl, usesForwardedFor });
}

function auditOf(parts: HttpPortsParts): AdminAudit {
  return new AdminAudit(authorizationOf(parts), parts.audit);
}

function makeArchiveCommand(parts: HttpPortsParts): ArchiveCommand {
  const { configuration } = parts;
  const { view } = parts.source;
  const { snapshotDirectory, logDirectory } = configuration.core;
  return new ArchiveCommand({
    isEnabled: configuration.server.admin?.snapshotEnabled ?? false,
    authorization: authorizationOf(parts),
    snapshotDirectory,
    logDirectory,
    isServing: () => view.isServing,
    lastZxid: () => view.lastZxid,
  });
}
