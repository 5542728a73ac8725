import { OpCode } from '@meerkat/protocol';
import { call } from './calls.ts';
import type { ClientSession } from './client-session.ts';
import { checkOptions } from './known-options.ts';
import { readZnode } from './machine/replies.ts';
import type { CallOptions } from './requester.ts';

/** It is outside of every chroot, and missing where replies are not leased. */
const LEASE_PATH = '/zookeeper/lease';

export async function readLease(session: ClientSession, options: CallOptions | undefined): Promise<boolean> {
  const request = { op: OpCode.getData, path: LEASE_PATH, watch: false } as const;
  const about = { operation: 'hasLeasedAnswers', path: LEASE_PATH };
  checkOptions('hasLeasedAnswers', options, about);
  const znode = await call(session, { request, read: readZnode, about, listener: null, whenMissing: null }, options);
  return znode !== null;
}
