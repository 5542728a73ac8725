import {
  counterOf,
  epochOf,
  hexZxid,
  JuteReader,
  readTxnEntry,
  type TxnEntry,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { LogThread } from './apache-disk.ts';
import type { ApacheHost } from './apache-host.ts';

/** A received txn. */
export interface Received {
  readonly zxid: Zxid;
  readonly payload: Uint8Array;
  readonly entry: TxnEntry;
}

/** Logs, commits and applies the txns of a 3.8.0 learner (`FollowerZooKeeperServer`). */
export class LearnerTxns {
  readonly #host: ApacheHost;
  readonly #complain: (what: string) => void;
  readonly #log: LogThread;
  /** Logged but not committed (`pendingTxns`). */
  #pending: Received[] = [];
  #lastQueued: Zxid = ZXID_ZERO;
  #isOver = false;

  constructor(host: ApacheHost, onLogged: (zxid: Zxid) => void, complain: (what: string) => void) {
    this.#host = host;
    this.#complain = complain;
    this.#log = new LogThread(host, host.disk, onLogged);
  }

  /** 3.8.0 only warns of a gap; the missing txns stay lost. */
  checkOrder(zxid: Zxid, isFromSnapshot: boolean): void {
    const isFirst = this.#lastQueued === ZXID_ZERO;
    const last = isFirst ? this.#host.database.lastProcessedZxid : this.#lastQueued;
    this.#lastQueued = zxid;
    if (zxid === last + 1 || (epochOf(zxid) > epochOf(last) && counterOf(zxid) === 1)) return;
    const what = `${hexZxid(zxid)} proposed behind ${hexZxid(last)}`;
    // The leader continues while a snapshot is taken, so txns that the snapshot holds may be sent again.
    if (isFirst && zxid <= last && isFromSnapshot) this.#host.warn(what);
    else this.#complain(`${what}: 3.8.0 warns, and logs it`);
  }

  /** The buffered txns have been queued for logging: the next txn must follow the last of them. */
  onQueued(last: Received | undefined): void {
    this.#lastQueued = last?.zxid ?? this.#lastQueued;
  }

  log(received: Received): void {
    if (counterOf(received.zxid) !== 0) this.#pending.push(received);
    this.#log.append(received);
  }

  /** `FollowerZooKeeperServer.commit` */
  commit(zxid: Zxid): void {
    if (this.#isOver) return;
    const head = this.#pending[0];
    if (head === undefined) {
      this.#complain(`COMMIT ${hexZxid(zxid)} without a proposal before it: 3.8.0 warns and ignores it`);
      return;
    }
    if (head.zxid !== zxid) {
      this.#complain(`COMMIT ${hexZxid(zxid)} while the oldest proposal is ${hexZxid(head.zxid)}: 3.8.0 exits with 12`);
      this.#host.exit(12, 'a COMMIT that does not match');
      return;
    }
    this.#pending.shift();
    this.apply(head);
  }

  inform(received: Received): void {
    this.#log.append(received);
    this.apply(received);
  }

  apply(received: Received): void {
    if (received.zxid <= this.#host.database.lastProcessedZxid) return;
    this.#host.database.apply(received, received.entry);
    this.#host.onApplied(received.zxid, received.entry);
  }

  /** The process or the role has ended. */
  kill(): void {
    this.#isOver = true;
    this.#log.kill();
  }

  drain(): void {
    this.#log.drain();
  }
}

/** Copies the payload, because the packet's bytes belong to the connection. */
export function receive(packet: { readonly entry: TxnEntry; readonly payload: Uint8Array }): Received {
  const payload = packet.payload.slice();
  const entry = readTxnEntry(new JuteReader(payload));
  if (entry === null) throw new Error('what was read once can be read again');
  return { zxid: entry.header.zxid, payload, entry };
}
