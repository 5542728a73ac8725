import { type ConnectOptions, connect, NoAuthError, NoNodeError, ZooKeeperError } from '@meerkat/client';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { ConnectionSettings } from '../connection/connection-settings.ts';
import { saslOption } from '../connection/sasl-mechanism.ts';
import type { FaultName, Finding } from './faults.ts';

/** Opens a session at one server, reads where the client's paths begin, and closes it. */
export async function probeSession(
  { name }: MonitoredServer,
  { options, sasl }: ConnectionSettings,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const finding = (fault: FaultName, found: string): Finding[] => [{ fault, where: name, found }];
  // The chroot is checked separately, to distinguish that it is missing from other errors.
  const { servers, chroot: given, ...rest } = options;
  const chroot = given ?? (typeof servers === 'string' ? /\/.*$/.exec(servers)?.[0] : undefined) ?? '/';
  const one: ConnectOptions = { ...rest, servers: name, connectTimeoutMs: timeoutMs, signal };
  try {
    const client = await connect({ ...one, ...saslOption(sasl) });
    try {
      await client.children(chroot, { timeoutMs, signal });
      return [];
    } catch (error) {
      if (error instanceof NoNodeError) return finding('chroot-missing', `there is no znode ${chroot}`);
      if (error instanceof NoAuthError)
        return finding('root-not-readable', `the children of ${chroot} may not be read`);
      throw error;
    } finally {
      await client.close({ timeoutMs }).catch(() => {});
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ZooKeeperError)) throw error;
    const text = error.message.split('\n')[0] ?? '';
    if (error.code === 'AUTHFAILED') return finding('credentials-refused', text);
    if (error.code === 'SESSIONCLOSEDREQUIRESASLAUTH' || /authenticat/i.test(text))
      return finding('authentication-required', text);
    return finding('session-refused', text);
  }
}
