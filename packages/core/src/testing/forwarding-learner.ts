import { type CreateTxn, type ErrorCode, OPEN_ACL, OpCode, type Request, type Txn, type Zxid } from '@meerkat/protocol';
import type { PipelineClient } from './pipeline-client.ts';
import { LearnerParty } from './serving-parties.ts';

export const setRoot: Request = { op: OpCode.setData, path: '/zookeeper', data: null, version: -1 };
export const createTxn = (path: string): CreateTxn => ({
  type: OpCode.create,
  path,
  data: null,
  acl: OPEN_ACL,
  isEphemeral: false,
  parentCversion: -1,
});
export const errorTxn = (error: ErrorCode): Txn => ({ type: OpCode.error, error });

/** A learner whose leader is controlled by the test. */
export class ForwardingLearner extends LearnerParty {
  #zxid = 0;

  /** @returns the zxid of the txn, which is not committed yet */
  proposeTxn(sessionId: bigint, cxid: number, txn: Txn): Zxid {
    const zxid = ++this.#zxid as Zxid;
    this.propose({ header: { sessionId, cxid, zxid, time: 0 }, txn, digest: null });
    return zxid;
  }

  commitTxn(sessionId: bigint, cxid: number, txn: Txn): void {
    this.commit(this.proposeTxn(sessionId, cxid, txn));
  }

  /** A client with a new session of this server. */
  connect(timeoutMs = 4000): PipelineClient {
    const client = this.client().create(timeoutMs);
    const { sessionId } = this.asked.at(-1)!;
    this.commitTxn(sessionId, 0, { type: OpCode.createSession, timeoutMs });
    return client;
  }

  /** Another connection of the same session, which the leader has validated. */
  reconnect(sessionId: bigint, timeoutMs = 4000): PipelineClient {
    const client = this.client();
    this.ask(client, sessionId, timeoutMs);
    this.serving.onRevalidated(sessionId, true);
    return client;
  }

  ask(client: PipelineClient, sessionId: bigint, timeoutMs = 4000): void {
    const decision = this.serving.sessions.resume(sessionId, timeoutMs);
    if (decision.kind === 'revalidate') decision.revalidations.ask(client, sessionId, decision.timeoutMs, 0);
  }
}

export const idOf = (client: PipelineClient): bigint => client.session?.id ?? 0n;
export const xidsOf = (client: PipelineClient): number[] => client.replies.map(({ xid }) => xid);
