import type { MessagePort } from 'node:worker_threads';
import { type PeerAddress, SocketSide } from '@meerkat/core';
import { checkClient } from '../../tls/peer-names.ts';
import { withContext } from '../../tls/tls-settings.ts';
import { NODE_CLOCK } from '../clock.ts';
import { ConnectionShare } from '../descriptors.ts';
import { type Listener, listen, type TlsListenOptions } from '../network.ts';
import type { Traffic } from '../socket-stream.ts';
import { Turn } from '../turn.ts';
import type { IoThreadData, NotedAddress, ThreadNote, ThreadPort, ThreadTls, ToServer, ToThread } from './messages.ts';
import { SharedCounts } from './shared-counts.ts';

/** A thread that has the sockets of clients: accepts them, speaks TLS, reads and writes. It answers nothing itself. */
export class IoThread {
  readonly #parent: Pick<MessagePort, 'postMessage'>;
  readonly #counts: SharedCounts;
  readonly #share: ConnectionShare;
  readonly #side: SocketSide;
  readonly #turn: Turn;
  readonly #listeners = new Map<number, Listener>();

  constructor(data: IoThreadData, parent: Pick<MessagePort, 'postMessage'>) {
    this.#parent = parent;
    this.#counts = new SharedCounts(data.counts);
    const onCrowded = (): void => this.#note({ kind: 'crowded' });
    this.#share = new ConnectionShare(data.clientsMax, onCrowded, this.#counts.connections(data.thread));
    this.#side = new SocketSide(data.rings, () => parent.postMessage(null));
    this.#turn = new Turn(NODE_CLOCK, (error) => {
      // A mistake of ours: this thread ends, and what it had is closed.
      setImmediate(() => {
        throw error;
      });
    });
    this.#turn.start(NO_CORE, NO_DISK);
    this.#turn.join({
      receive: () => this.#side.receive(),
      publish: () => {
        for (const [port, { handshakeCount }] of this.#listeners) {
          this.#counts.setHandshakes(data.thread, port, handshakeCount);
        }
        return this.#side.publish();
      },
    });
  }

  onMessage(message: ToThread): void {
    if (message === null) {
      this.#turn.mark();
      return;
    }
    switch (message.kind) {
      case 'listen':
        void this.#listen(message.port);
        return;
      case 'renew':
        this.#listeners.get(message.port)?.renew(withContext(message.settings));
        return;
      case 'close':
        this.#listeners.get(message.port)?.close();
        return;
      case 'destroyAll':
        this.#listeners.get(message.port)?.destroyAll();
        return;
      case 'freeze':
        this.#listeners.get(message.port)?.freeze();
        return;
      case 'thaw':
        this.#listeners.get(message.port)?.thaw();
        return;
    }
  }

  async #listen(port: ThreadPort): Promise<void> {
    const { number, tls, isShared } = port;
    try {
      const listener = await listen(
        {
          host: port.host,
          port: port.port,
          backlog: port.backlog,
          keepAlive: port.keepAlive,
          traffic: NO_TRAFFIC,
          share: this.#share,
          isPortShared: isShared,
          ...(tls === null ? {} : { tls: this.#makeTls(tls, number) }),
        },
        this.#turn,
        (stream) => this.#side.accept(stream, number),
        (message) => this.#note({ kind: 'warning', message }),
      );
      this.#listeners.set(number, listener);
      this.#send({ kind: 'listening', port: number, at: { host: listener.host, port: listener.port } });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.#send({ kind: 'failed', port: number, code, message });
    }
  }

  #makeTls({ settings, isUnified, perHostMax }: ThreadTls, port: number): TlsListenOptions {
    const { options } = settings;
    return {
      settings: withContext(settings),
      isUnified,
      perHostMax,
      checkPeer: options.verifiesClientHostNames
        ? (certificate, { host }) => checkClient(certificate, host, options)
        : undefined,
      events: {
        onHandshakeFailed: (remote, reason, isAuthentication) =>
          this.#note({ kind: 'handshake-failed', port, remote: noted(remote), reason, isAuthentication }),
        onHandshakesExceeded: (remote, reason) =>
          this.#note({ kind: 'handshakes-exceeded', port, remote: noted(remote), reason }),
      },
    };
  }

  #note(note: ThreadNote): void {
    this.#side.note(JSON.stringify(note));
    this.#turn.mark();
  }

  #send(message: ToServer): void {
    this.#parent.postMessage(message);
  }
}

function noted({ ip, host, port }: PeerAddress): NotedAddress {
  return { ip: [...ip], host, port };
}

const NO_CORE = { onTurnEnd(): void {}, nextDeadlineMs: (): number => Number.POSITIVE_INFINITY, onTick(): void {} };
const NO_DISK = { startEffects: (): boolean => false };
/** Counted in the thread of the core. */
const NO_TRAFFIC: Traffic = { onBytesReceived(): void {} };
