import { ErrorCode, OpCode, Perm, type ReconfigRequest, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { Identity } from '../base/ports.ts';
import { setData } from '../testing/core-requests.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { ANN, PreparerBench } from '../testing/preparer-bench.ts';
import { Permission } from './permission.ts';
import { NoReconfigurer, type ReconfigPlan, ReconfigPreparer } from './reconfig-preparer.ts';

const CONFIG = '/zookeeper/config';
const SUPER: Identity = { scheme: 'super', id: '' };
const REMOVE: ReconfigRequest = {
  op: OpCode.reconfig,
  joiningServers: null,
  leavingServers: '3',
  newMembers: null,
  currentConfigId: -1,
};

/** A preparer of reconfigs; `/zookeeper/config` has the ACL of a new server: everyone may read it, nobody may write it. */
class Reconfigs extends PreparerBench {
  prepare(plan: ReconfigPlan, identities: readonly Identity[]): Txn {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    const header = { sessionId: 7n, cxid: 0, zxid: (this.database.lastZxid + 1) as Zxid, time: 1000 };
    return new ReconfigPreparer(this.pending, permission, { plan: () => plan }).prepare(REMOVE, header, identities);
  }
}

const refused = (error: ErrorCode): Txn => ({ type: OpCode.error, error });

// ZooKeeper's manual, "Dynamic Reconfiguration", "Access Control".
describe('a reconfig', () => {
  test('needs the write permission on /zookeeper/config, which only the super user has by default', () => {
    const reconfigs = new Reconfigs();
    for (const identities of [[], [ANN]]) {
      expect(reconfigs.prepare('version=1', identities)).toEqual(refused(ErrorCode.noAuth));
    }
    expect(reconfigs.prepare('version=1', [ANN, SUPER])).toEqual({
      type: OpCode.reconfig,
      path: CONFIG,
      data: new TextEncoder().encode('version=1'),
      version: -1,
    });
  });

  test('is allowed if the ACL of /zookeeper/config grants the client write, and by no other permission', () => {
    for (const perms of [Perm.write, Perm.read | Perm.create | Perm.delete | Perm.admin]) {
      const reconfigs = new Reconfigs();
      reconfigs.write({ op: OpCode.setACL, path: CONFIG, acl: [{ perms, ...ANN }], version: -1 }, [SUPER]);
      const { type } = reconfigs.prepare('version=1', [ANN]);
      expect(type).toBe(perms === Perm.write ? OpCode.reconfig : OpCode.error);
    }
  });

  test('that fails a check gets the error of that check, with or without permission', () => {
    const reconfigs = new Reconfigs();
    for (const identities of [[], [SUPER]]) {
      expect(reconfigs.prepare(ErrorCode.badVersion, identities)).toEqual(refused(ErrorCode.badVersion));
    }
  });

  test("that Apache's server would accept and ours refuses is answered NOAUTH without permission", () => {
    const reconfigs = new Reconfigs();
    const plan = { errorIfAllowed: ErrorCode.badArguments };
    expect(reconfigs.prepare(plan, [])).toEqual(refused(ErrorCode.noAuth));
    expect(reconfigs.prepare(plan, [SUPER])).toEqual(refused(ErrorCode.badArguments));
  });

  test('sets the version of /zookeeper/config to -1, visible to requests in flight behind it; a refused one does not', () => {
    for (const [identities, error] of [
      [[SUPER], ErrorCode.badVersion],
      [[], ErrorCode.ok],
    ] as const) {
      const reconfigs = new Reconfigs();
      reconfigs.prepare('version=1', identities);
      expect(reconfigs.error(setData(CONFIG, 0), [SUPER])).toBe(error);
    }
  });

  test.each([
    [true, ErrorCode.unimplemented],
    [false, ErrorCode.reconfigDisabled],
  ])('is refused by a standalone server; reconfigEnabled=%s', (isEnabled, error) => {
    expect(new NoReconfigurer(isEnabled).plan()).toBe(error);
  });
});
