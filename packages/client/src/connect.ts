import { Client } from './client.ts';
import { ClientSession } from './client-session.ts';
import { instrumentIfRegistered } from './diagnostics/opentelemetry.ts';
import { AbortedError, AuthFailedError, ConnectError, TimeoutError } from './errors.ts';
import { checkOptions } from './known-options.ts';
import { isConnectedState } from './machine/state.ts';
import { type ConnectOptions, settle } from './options.ts';
import { waitForState } from './states.ts';

/**
 * Connects to a ZooKeeper service and creates a session.
 *
 * All addresses are tried repeatedly until one answers or `connectTimeoutMs` has passed.
 *
 * @param target `host:port,host:port/chroot`, or options
 * @throws ConnectError that lists every attempted address and why it failed; AuthFailedError; AbortedError
 * @example
 * await using client = await connect('10.0.0.1:2181,10.0.0.2:2181/app', { sessionTimeoutMs: 15_000 });
 */
export async function connect(
  target: string | ConnectOptions,
  options: Omit<ConnectOptions, 'servers'> = {},
): Promise<Client> {
  const whole: ConnectOptions =
    typeof target === 'string' ? { ...options, servers: target } : { ...target, ...options };
  checkOptions('connect', whole, { operation: 'connect', path: null });
  const settings = settle(whole);
  const session = new ClientSession(settings, whole);
  session.host.start();
  await instrumentIfRegistered();
  try {
    await waitForState(session, isConnectedState, 'connect', {
      signal: whole.signal,
      timeoutMs: settings.connectTimeoutMs,
    });
  } catch (error) {
    const attempts = session.abandon('the first connection was cancelled');
    if (error instanceof TimeoutError) throw new ConnectError(attempts, error);
    if (error instanceof AbortedError || error instanceof AuthFailedError) throw error;
    throw new ConnectError(attempts, error);
  }
  return new Client(session, settings.chroot);
}
