import type { Trace } from '@meerkat/core';
import { inlineMore } from './compiler.ts';
import type { ReadConfiguration } from './config/zoo-cfg.ts';
import { ExitCode, ServerError } from './exit-codes.ts';
import { type Logger, makeLogger, readLoggerOptions } from './logger.ts';
import type { RunningServer, StartOptions } from './running-server.ts';
import { startServer } from './server.ts';
import { ServiceManager } from './service-manager.ts';

/** How long a member may look for a leader before it reports ready anyway: other members may only start after that. */
const MEMBER_READY_MS = 30_000;

/**
 * Runs a server as this process, until it is stopped or fails.
 *
 * The first SIGTERM or SIGINT lets it finish what is in flight; a second one ends the process at once.
 *
 * @param onStarted called once clients are served; of a member of an ensemble, once it looks for a leader
 * @param options what stands between this server and the world
 * @returns the code to exit with
 */
export async function runServer(
  configuration: ReadConfiguration,
  onStarted: (server: RunningServer) => void,
  options: Pick<StartOptions, 'decorateDisk' | 'decorateNetwork' | 'trace'> = {},
): Promise<ExitCode> {
  const { ensemble, serverId } = configuration.core;
  const logger = await makeLogger(readLoggerOptions(process.env), ensemble === null ? null : serverId);
  for (const warning of configuration.warnings) logger.log('warn', warning);
  const end = listenForSignals(logger);
  const manager = new ServiceManager(process.env, logger);
  try {
    const server = await startServer(configuration, {
      ...options,
      ...withManager(options.trace, manager),
      logger,
      signal: end.signal,
    });
    // A start is over before longer compilations would pay.
    inlineMore();
    // A member of an ensemble says so whenever it has a leader.
    if (configuration.core.ensemble === null) {
      const { host, port } = server.address;
      logger.log('info', 'clients are served', { event: 'ready', host, port });
    }
    onStarted(server);
    server.serving.then(
      () => manager.onReady('clients are served'),
      () => {},
    );
    setTimeout(() => manager.onReady('looks for a leader: clients are not served'), MEMBER_READY_MS).unref();
    const outcome = await Promise.race([server.failed, end.asked]);
    if (outcome !== null) return sayExit(logger, outcome.exitCode);
    manager.onStopping();
    await server.stop();
    logger.log('info', 'stopped: everything acknowledged is synced');
    return sayExit(logger, ExitCode.ok);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    const isData = error.exitCode === ExitCode.dataDirectory;
    logger.log(
      error.exitCode === ExitCode.ok ? 'info' : 'error',
      error.message,
      isData ? { event: 'not-started' } : {},
    );
    return sayExit(logger, error.exitCode);
  }
}

function sayExit(logger: Logger, exitCode: ExitCode): ExitCode {
  logger.log('debug', `ends with exit code ${exitCode}`, { event: 'exit', exitCode });
  return exitCode;
}

/** Forwards trace events to the service manager, if there is one. */
function withManager(trace: Trace | undefined, manager: ServiceManager): { readonly trace?: Trace } {
  if (!manager.isThere) return {};
  return {
    trace: {
      emit(event) {
        trace?.emit(event);
        manager.trace.emit(event);
      },
    },
  };
}

interface End {
  /** Aborted by the first signal, for a start that is under way. */
  readonly signal: AbortSignal;
  readonly asked: Promise<null>;
}

function listenForSignals(logger: Logger): End {
  const controller = new AbortController();
  const asked = new Promise<null>((resolve) => {
    const onSignal = (name: NodeJS.Signals): void => {
      if (controller.signal.aborted) process.exit(ExitCode.unexpected);
      logger.log('info', `${name}: finishes what is in flight and stops; a second signal ends it at once`);
      controller.abort();
      resolve(null);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
  return { signal: controller.signal, asked };
}
