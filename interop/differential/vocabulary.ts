/**
 * The names used by the random script. They are few on purpose, so that most requests hit state left by an earlier
 * request.
 *
 * The tree has regions, so that a difference between releases stays in its region:
 *
 *   /o  open: every znode readable by anyone; watches of all kinds
 *   /g  guarded: ACLs of all kinds; after each change the notifications of all sessions are collected
 *   /q  quota: a limit on the subtree
 *   /m  mutated: requests with damaged bytes; no watches
 */
import { createHash } from 'node:crypto';
import type { AclEntry } from '../harness/record-builder.ts';
import { OPEN_ACL } from '../harness/record-builder.ts';

export const OPEN_PATHS: readonly string[] = [
  ...['/o', '/o/a', '/o/b', '/o/c', '/o/a/x', '/o/a/y', '/o/a/x/1', '/o/b/x', '/o/b/e', '/o/c/e', '/o/...', '/o/.é'],
];
export const SEQUENCE_PARENTS: readonly string[] = ['/o', '/o/a', '/o/b'];
export const GUARDED_PATHS: readonly string[] = ['/g', '/g/a', '/g/b', '/g/a/x', '/g/a/y', '/g/b/x'];
export const QUOTA_PATHS: readonly string[] = ['/q', '/q/a', '/q/b', '/q/a/x', '/q/c', '/q/d', '/q/e'];
export const QUOTA_NODES: readonly string[] = [
  ...['/zookeeper/quota/q', '/zookeeper/quota/q/zookeeper_limits', '/zookeeper/quota/q/zookeeper_stats'],
];
export const DAMAGED_PATHS: readonly string[] = ['/m', '/m/a', '/m/b', '/m/a/x'];

/** Invalid or special paths. */
export const ODD_PATHS: readonly (string | null)[] = [
  ...['', null, 'a', 'o/a', '/', '//', '/o/', '/o//a', '/o/.', '/o/..', '/o/./a', '/o/a/', '/o/a/../b', ' ', '/o /a'],
  ...['/o/\u0000x', '/o/\u0001', '/o/\u001f', '/o/\u007f', '/o/\u009f', '/o/\ud7ff', '/o/\ue000', '/o/\uf8ff'],
  ...['/o/\uf900', '/o/\uffef', '/o/\ufff0', '/o/\uffff', '/o/\u{1f600}', '/nope', '/nope/x', `/o/${'n'.repeat(300)}`],
  ...['/zookeeper', '/zookeeper/config', '/zookeeper/quota', '/zookeeper/nope', '/zookeeper/config/x'],
];

/** Without null, because Apache's server may skip a zxid for a multi with a null path. */
export const ODD_PATHS_IN_MULTI: readonly (string | null)[] = ODD_PATHS.filter((path) => path !== null);

export const ODD_ACLS: readonly (readonly AclEntry[] | null)[] = [
  null,
  [],
  [{ perms: 31, scheme: null, id: 'anyone' }],
  [{ perms: 31, scheme: 'world', id: null }],
  [{ perms: 31, scheme: 'world', id: 'someone' }],
  [{ perms: 31, scheme: '', id: '' }],
  [{ perms: 31, scheme: 'nobody', id: 'x' }],
  [{ perms: 31, scheme: 'super', id: '' }],
  [{ perms: 31, scheme: 'digest', id: 'no-colon' }],
  [{ perms: 31, scheme: 'digest', id: 'a:b:c' }],
  [{ perms: 31, scheme: 'digest', id: ':' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.4/33' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.4/x' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.256' }],
  [{ perms: 31, scheme: 'ip', id: '' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.-4' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.+' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.4/-8' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.4/+33' }],
  [...OPEN_ACL, { perms: 1, scheme: 'nobody', id: 'x' }],
];

/** Restrictive ACLs: some of them lock out all but the super user. */
export const GUARDING_ACLS: readonly (readonly AclEntry[])[] = [
  OPEN_ACL,
  OPEN_ACL,
  [...OPEN_ACL, ...OPEN_ACL],
  [{ perms: 1, scheme: 'world', id: 'anyone' }],
  [{ perms: 30, scheme: 'world', id: 'anyone' }],
  [{ perms: 0, scheme: 'world', id: 'anyone' }],
  [{ perms: 63, scheme: 'world', id: 'anyone' }],
  [{ perms: -1, scheme: 'world', id: 'anyone' }],
  [{ perms: 31, scheme: 'auth', id: '' }],
  [{ perms: 31, scheme: 'auth', id: null }],
  [
    { perms: 15, scheme: 'auth', id: 'whoever' },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ],
  [{ perms: 31, scheme: 'digest', id: digestId('alice:secret') }],
  [{ perms: 17, scheme: 'digest', id: 'bob:x' }],
  [{ perms: 31, scheme: 'digest', id: '\u{1f600}:x' }, ...OPEN_ACL],
  [{ perms: 31, scheme: 'ip', id: '127.0.0.1' }],
  [{ perms: 31, scheme: 'ip', id: '127.0.0.0/8' }],
  [{ perms: 23, scheme: 'ip', id: '127.0.0.0/31' }],
  [
    { perms: 31, scheme: 'ip', id: '10.1.2.3' },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ],
  [{ perms: 31, scheme: 'ip', id: '126.0.0.0/0' }],
  [{ perms: 31, scheme: 'ip', id: '126.0.0.0/-0' }],
  [{ perms: 31, scheme: 'ip', id: '+127.-0.000.0000000000001' }],
  [{ perms: 31, scheme: 'ip', id: '127.9.9.9/+008' }],
  [{ perms: 31, scheme: 'ip', id: '+10.1.2.3/+32' }],
];

/** Addresses that only one of the two servers considers valid. If one were stored, the trees would diverge. */
export const FOREIGN_ADDRESSES: readonly string[] = [
  ...['::1', '0:0:0:0:0:0:0:1', 'fe80::1/64', '::ffff:127.0.0.1', '127.0.0.\u0661', '127.0.0.1/\u0668'],
];

export const AUTHS: readonly { readonly scheme: string | null; readonly credentials: string | null }[] = [
  // The super user bypasses ACLs, so it is rare.
  ...Array.from({ length: 20 }, () => ({ scheme: 'digest', credentials: 'alice:secret' })),
  { scheme: 'digest', credentials: 'bob:a:b' },
  { scheme: 'digest', credentials: 'super:test' },
  { scheme: 'digest', credentials: 'super:wrong' },
  { scheme: 'digest', credentials: 'nocolon' },
  { scheme: 'digest', credentials: '' },
  { scheme: 'ip', credentials: 'anything' },
  { scheme: 'ip', credentials: null },
];

export const REFUSED_AUTHS: typeof AUTHS = [
  { scheme: 'nobody', credentials: 'x' },
  { scheme: 'world', credentials: 'anyone' },
  { scheme: 'super', credentials: 'test' },
  { scheme: 'sasl', credentials: 'x' },
  { scheme: 'x509', credentials: 'x' },
  { scheme: '', credentials: '' },
  { scheme: null, credentials: 'x' },
  { scheme: null, credentials: null },
  { scheme: 'digest', credentials: null },
];

/** Prefixes for getEphemerals that match everything, or look like it. */
export const EPHEMERAL_PREFIXES: readonly (string | null)[] = [
  ...['/', '', null, '   ', ' /', '/ ', '\t/\n', '\u0000', '\u001f/\u0001'],
  ...['x', '/o/b', '/o/a/', ' /o', '/o ', '//', '/ /', '\u007f', '\u0085', '\u00a0', '\u3000/', '\ufeff'],
];

export const VERSIONS: readonly number[] = [-1, -1, -1, -1, -1, -1, 0, 0, 1, 2, 3, -2, 2147483647, -2147483648];

export const TTLS: readonly bigint[] = [
  ...[3_600_000n, 86_400_000n, 0xff_ffff_ffffn, 0x100_0000_0000n, 0n, -1n, -(2n ** 63n), 2n ** 63n - 1n],
];

/** Op codes that no client sends. */
export const UNKNOWN_OPS: readonly number[] = [0, -1, -2, -12, 10, 23, 24, 99, 108, 1000, 2147483647, -2147483648];

/** The identity of a connection after `auth digest <credentials>`. */
export function digestId(credentials: string): string {
  const user = credentials.split(':', 1)[0] ?? '';
  return `${user}:${createHash('sha1').update(credentials).digest('base64')}`;
}
