import { join } from 'node:path';
import type { RestorableSnapshot, ServerCore } from '@meerkat/core';
import type { Zxid } from '@meerkat/protocol';
import type { RestoreUpload, Uploaded } from '../http/messages.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { AdminAudit } from './admin-audit.ts';
import { type AdminAuthorization, type Caller, NOT_SERVING, type Refusal } from './authorization.ts';

export interface RestoreCommandParts {
  readonly isEnabled: boolean;
  readonly isOfEnsemble: boolean;
  readonly intervalMs: number;
  readonly snapshotDirectory: string;
  readonly diskFreeBytesMin: number;
  readonly bytesMax: number;
  readonly authorization: Pick<AdminAuthorization, 'refusalOf'>;
  readonly audit: Pick<AdminAudit, 'add' | 'nameOf'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly core: Pick<ServerCore, 'restore'>;
  isServing(): boolean;
  monotonicMs(): number;
  /** Gives the core an event, in a turn of its own. */
  deliver(event: () => void): void;
}

/** A start removes what has such a name. */
const UPLOAD_NAME = 'unfinished-snapshot.restore';

/**
 * The admin command `restore` (3.9): a snapshot that is sent becomes the history of this server. Checked in this order: who asks
 * (401, 403), whether the server serves (200 with a text, as ZooKeeper), whether it is switched on (503), whether there is a
 * body (400), whether it is too early or another one is on its way (429). Then the HTTP thread writes the body to a file and verifies it, and the core exchanges its history for it.
 *
 * A member of an ensemble refuses (409), where Apache's leaves the members with different trees.
 */
export class RestoreCommand {
  readonly #parts: RestoreCommandParts;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** The one on its way: when it began, and who asked. */
  #begun: { readonly atMs: number; readonly caller: Caller } | null = null;
  /** The body has come, and the core is exchanging its history. */
  #isExchanging = false;

  constructor(parts: RestoreCommandParts) {
    this.#parts = parts;
  }

  begin(caller: Caller, hasBody: boolean): RestoreUpload | Refusal {
    const outcome = this.#begin(caller, hasBody);
    if ('status' in outcome) this.#parts.audit.add('restore', caller, 'failure');
    return outcome;
  }

  #begin(caller: Caller, hasBody: boolean): RestoreUpload | Refusal {
    const { isEnabled, isOfEnsemble, intervalMs, metrics, logger, audit, snapshotDirectory } = this.#parts;
    const refusal = this.#parts.authorization.refusalOf(caller, NOT_SERVING);
    if (refusal !== null) return refusal;
    if (!this.#parts.isServing()) return NOT_SERVING;
    if (!isEnabled) return { status: 503, error: null };
    if (isOfEnsemble) return { status: 409, error: OF_ENSEMBLE };
    if (!hasBody) return { status: 400, error: null };
    const nowMs = this.#parts.monotonicMs();
    if (this.#begun !== null || nowMs - this.#lastMs < intervalMs) {
      metrics.restoresRateLimited++;
      return { status: 429, error: null };
    }
    this.#lastMs = nowMs;
    this.#begun = { atMs: nowMs, caller };
    logger.log('info', `a snapshot to be restored is being received from ${audit.nameOf(caller)}`, {
      event: 'restore',
    });
    const { diskFreeBytesMin, bytesMax } = this.#parts;
    return { path: join(snapshotDirectory, UPLOAD_NAME), freeBytesMin: diskFreeBytesMin, bytesMax };
  }

  /** The thread that receives the body has ended. A restore that the core has begun continues. */
  abandon(): void {
    if (this.#begun === null || this.#isExchanging) return;
    this.#parts.audit.add('restore', this.#begun.caller, 'failure');
    this.#begun = null;
    this.#lastMs = Number.NEGATIVE_INFINITY;
    this.#parts.metrics.restoreErrors++;
    const text = 'no snapshot was restored, and nothing has changed: the thread that received it has ended';
    this.#parts.logger.log('error', text, { event: 'restore' });
  }

  /** @returns the zxid of the snapshot */
  async finish(uploaded: Uploaded): Promise<{ readonly lastZxid: number } | Refusal> {
    const { metrics, logger, audit, monotonicMs } = this.#parts;
    const begun = this.#begun;
    const recordAudit = (result: 'success' | 'failure'): void => {
      if (begun !== null) audit.add('restore', begun.caller, result);
    };
    this.#isExchanging = true;
    try {
      if ('fault' in uploaded) throw new Error(uploaded.fault);
      const zxid = uploaded.zxid as Zxid;
      await this.#restore({ path: join(this.#parts.snapshotDirectory, UPLOAD_NAME), zxid });
      logger.log('warn', `a snapshot of zxid 0x${zxid.toString(16)} was restored in place of all there was`, {
        event: 'restore',
      });
      if (begun !== null) metrics.restore.add((monotonicMs() - begun.atMs) * 1000);
      recordAudit('success');
      return { lastZxid: zxid };
    } catch (error) {
      metrics.restoreErrors++;
      recordAudit('failure');
      const text = `no snapshot was restored, and nothing has changed: ${(error as Error).message}`;
      logger.log('error', text, { event: 'restore' });
      return { status: 500, error: null };
    } finally {
      this.#begun = null;
      this.#isExchanging = false;
    }
  }

  #restore(snapshot: RestorableSnapshot): Promise<void> {
    return new Promise((resolve, reject) => {
      const onDone = (error: Error | null): void => (error === null ? resolve() : reject(error));
      this.#parts.deliver(() => this.#parts.core.restore(snapshot, onDone));
    });
  }
}

const OF_ENSEMBLE =
  'a member of an ensemble restores nothing while it runs: stop all members, restore the same state with "meerkat restore" or move their version-2 away but for the snapshot, and start them';
