import { ClientRequester } from '../client-requester.ts';
import { ClientSession } from '../client-session.ts';
import { isConnectedState } from '../machine/state.ts';
import { type ConnectOptions, settle } from '../options.ts';
import { waitForState } from '../states.ts';
import type { WatchPorts } from '../watch-ports.ts';

/** A session on a server, as seen by the internal parts of a client. */
export interface SessionPorts extends AsyncDisposable {
  readonly session: ClientSession;
  readonly ports: WatchPorts;
}

export async function connectPorts(options: ConnectOptions): Promise<SessionPorts> {
  const settings = settle(options);
  const session = new ClientSession(settings, options);
  session.host.start();
  await waitForState(session, isConnectedState, 'connect', { timeoutMs: settings.connectTimeoutMs });
  return {
    session,
    ports: new ClientRequester(session, settings.chroot),
    async [Symbol.asyncDispose]() {
      const closed = waitForState(session, (state) => state === 'closed', 'close', {});
      session.session.close();
      await closed;
    },
  };
}
