import { OpCode } from '@meerkat/protocol';
import { call, callRead } from './calls.ts';
import type { ClientSession } from './client-session.ts';
import { checkOptions } from './known-options.ts';
import { readZnode, type Znode } from './machine/replies.ts';
import type { ReconfigOptions } from './operations.ts';
import type { ReadOptions } from './requester.ts';

/** The membership of the ensemble is outside of every chroot. */
const CONFIG_PATH = '/zookeeper/config';

export async function readMembership(session: ClientSession, options: ReadOptions | undefined): Promise<Znode> {
  const request = { op: OpCode.getData, path: CONFIG_PATH, watch: false } as const;
  const about = { operation: 'config', path: CONFIG_PATH };
  checkOptions('config', options, about);
  return await callRead(session, { request, read: readZnode, about, listener: null }, CONFIG_PATH, options);
}

/** @returns the new configuration */
export async function changeMembership(session: ClientSession, options: ReconfigOptions): Promise<Znode> {
  const about = { operation: 'reconfig', path: CONFIG_PATH };
  checkOptions('reconfig', options, about);
  const { joining, leaving, members, fromVersion } = options;
  const request = {
    op: OpCode.reconfig,
    joiningServers: joining?.join(',') ?? null,
    leavingServers: leaving?.join(',') ?? null,
    newMembers: members?.join(',') ?? null,
    currentConfigId: Number(fromVersion ?? -1n),
  } as const;
  return await call(session, { request, read: readZnode, about, listener: null }, options);
}
