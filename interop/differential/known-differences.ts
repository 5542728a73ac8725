/**
 * Where our server answers differently from the Apache ZooKeeper 3.8.0 that it is compared with, on purpose.
 *
 * We are the released 3.9 line, so most entries are changes between 3.8.0 and 3.9. Everything that is not in this list
 * fails the comparison.
 */
import { Op } from '../harness/raw-client.ts';
import { RecordReader } from '../harness/record-reader.ts';
import type { Guard } from './guard.ts';
import type { CanonicalReply } from './lockstep-server.ts';
import type { RequestStep } from './step.ts';

export interface KnownDifference {
  readonly name: string;
  readonly reason: string;
  /** Reference for the difference. */
  readonly source: string;
  /** True when the two replies differ only in this. */
  explains(step: RequestStep, apache: CanonicalReply, ours: CanonicalReply, guard: Guard): boolean;
}

const WRITES: ReadonlySet<number> = new Set([
  ...[Op.create, Op.create2, Op.createContainer, Op.createTTL, Op.delete, Op.setData, Op.setACL, Op.multi, Op.reconfig],
]);

const Code = {
  ok: 0,
  marshalling: -5,
  badArguments: -8,
  noNode: -101,
  noAuth: -102,
  invalidAcl: -114,
  noWatcher: -121,
} as const;

/** The character of the vocabulary that needs two Java chars, and its two surrogates when read as UTF-8. */
const SUPPLEMENTARY = '\u{1f600}';
const HALVES = '\ufffd'.repeat(6);

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    name: 'a write that cannot be decoded takes no zxid',
    reason: '3.8 logs a failed transaction; newer releases do not.',
    source: 'docs/protocol/client.md, "Errors"',
    explains: (step, apache, ours) =>
      WRITES.has(step.type) &&
      (step.facts.isDamaged === true || step.type === Op.multi) &&
      ours.error === Code.marshalling &&
      apache.error === Code.marshalling &&
      apache.zxid === ours.zxid + 1n &&
      apache.body === ours.body,
  },
  {
    name: 'a null path makes a write undecodable',
    reason: 'It takes a zxid; −8 where the path is validated, else −5.',
    source: 'docs/protocol/client.md, "Errors"',
    explains: (step, apache, ours) =>
      WRITES.has(step.type) &&
      (step.facts.isDamaged === true || / null\b/.test(step.text)) &&
      ours.error === Code.marshalling &&
      ours.body === '' &&
      (apache.error === Code.marshalling || apache.error === Code.badArguments) &&
      apache.zxid === ours.zxid + 1n &&
      apache.body === ours.body,
  },
  {
    name: 'an illegal create flag makes a multi undecodable',
    reason: 'Up to 3.8.1 that op alone is −8; since 3.8.2 the request −5.',
    source: 'docs/protocol/client.md, "Multi"',
    explains: (step, apache, ours) =>
      step.type === Op.multi &&
      (step.facts.subOps ?? []).some(({ type, flags }) => type !== Op.createTTL && isCreate(type) && !isFlag(flags)) &&
      apache.error === Code.ok &&
      ours.error === Code.marshalling &&
      ours.body === '' &&
      apache.zxid === ours.zxid + 1n,
  },
  {
    name: 'TTL flags without a TTL fail one op of a multi',
    reason: '3.8.0: −5 for the request; since 3.8.2 −8 for that op.',
    source: 'docs/protocol/client.md, "Multi"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.multi &&
      (step.facts.subOps ?? []).some(({ type, flags }) => type !== Op.createTTL && (flags === 5 || flags === 6)) &&
      apache.error === Code.marshalling &&
      ours.error === Code.ok &&
      ours.body.startsWith('<-1 ') &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'a create2 in a multi is answered as a create2',
    reason: 'Up to 3.8.1 as a create, with the path only.',
    source: 'docs/protocol/client.md, "Multi"',
    explains: (step, apache, ours) =>
      step.type === Op.multi &&
      (step.facts.subOps ?? []).some(({ type }) => type === Op.create2) &&
      apache.error === Code.ok &&
      ours.error === Code.ok &&
      apache.zxid === ours.zxid &&
      areSameButForCreate2(apache.body, ours.body),
  },
  {
    name: 'an access control entry without an id is an invalid one',
    reason: '−5, but with the scheme auth a null id is an empty one (as here).',
    source: 'docs/protocol/client.md, "Authentication"',
    explains: (step, apache, ours) =>
      WRITES.has(step.type) &&
      apache.error === Code.marshalling &&
      (ours.error === Code.invalidAcl || (step.type === Op.multi && ours.body.includes('<-1 -114'))) &&
      apache.zxid === ours.zxid &&
      (step.facts.isDamaged === true || step.text.includes(':null')),
  },
  {
    name: 'an address in an ACL may be one of IPv6',
    reason: '3.8 takes IPv4 only (−114), newer releases of 3.9 both.',
    source: 'docs/protocol/client.md, "Authentication"',
    explains: (step, apache, ours) =>
      step.type === Op.setACL &&
      /:ip:[^ \]]*:/.test(step.text) &&
      apache.error === Code.invalidAcl &&
      ours.error === Code.noNode &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'the digits of an address in an ACL are those of ASCII',
    reason: 'Java reads digits of every script.',
    source: 'seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.setACL &&
      /:ip:[^ \]]*(?![0-9])\p{Nd}/u.test(step.text) &&
      apache.error === Code.noNode &&
      ours.error === Code.invalidAcl &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'a null list of watches is an empty one',
    reason: '−5 to a setWatches; no client sends one.',
    source: 'docs/protocol/client.md, "Encoding"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      (step.type === Op.setWatches || step.type === Op.setWatches2) &&
      apache.error === Code.marshalling &&
      ours.error === Code.ok &&
      apache.zxid === ours.zxid &&
      hasNullList(step),
  },
  {
    name: 'a multiRead that fails as a whole has no body',
    reason: 'Results up to the null path follow the error −5.',
    source: 'docs/protocol/client.md, "Frames and headers"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.multiRead &&
      apache.error === Code.marshalling &&
      ours.error === Code.marshalling &&
      ours.body === '' &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'sync needs a path',
    reason: 'A null path is sent back; here it is undecodable everywhere.',
    source: 'docs/protocol/client.md, "Errors"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.sync && apache.body === 'null' && ours.error === Code.marshalling && apache.zxid === ours.zxid,
  },
  {
    name: 'text beyond the basic plane is written as UTF-8',
    reason: 'Each half of a surrogate pair takes three bytes, which is no UTF-8. It reads ours.',
    source: 'docs/protocol/client.md, "Encoding"',
    explains: (step, apache, ours) =>
      (step.type === Op.getACL || step.type === Op.sync) &&
      apache.error === Code.ok &&
      ours.error === Code.ok &&
      apache.body.replaceAll(HALVES, SUPPLEMENTARY) === ours.body &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'bytes that are no UTF-8 are read as the WHATWG says',
    reason: 'Java has fewer U+FFFD for some. No path may hold one: only an echo shows it.',
    source: 'seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.sync &&
      apache.error === Code.ok &&
      ours.error === Code.ok &&
      /\ufffd/.test(apache.body) &&
      apache.body.replaceAll('\ufffd', '') === ours.body.replaceAll('\ufffd', '') &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'the Stat of a create2 knows what the server wrote into a new zookeeper_stats',
    reason: 'The Stat has the length of the data in the request.',
    source: 'seen with 3.8.0',
    explains: (step, apache, ours) =>
      (step.type === Op.create2 || step.type === Op.createContainer) &&
      step.text.includes('/zookeeper_stats"') &&
      apache.error === Code.ok &&
      ours.error === Code.ok &&
      apache.zxid === ours.zxid &&
      apache.body.replace(/dataLength \d+/, '') === ours.body.replace(/dataLength \d+/, ''),
  },
  {
    name: 'getAllChildrenNumber of the empty path is that of the root',
    reason: 'One more: it counts the root.',
    source: 'docs/protocol/client.md, "Operations"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.getAllChildrenNumber &&
      new RecordReader(step.body).ustring() === '' &&
      Number(apache.body) === Number(ours.body) + 1 &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'exists needs READ',
    reason: "Since 3.8.4 and 3.9.2 too. Debian's 3.8.0 tells the Stat, but sends no watch event.",
    source: 'docs/protocol/client.md, "Order of checks"',
    explains: (step, apache, ours, guard) =>
      step.type === Op.exists &&
      apache.error === Code.ok &&
      ours.error === Code.noAuth &&
      ours.body === '' &&
      apache.zxid === ours.zxid &&
      mayBeUnreadable(step, guard),
  },
  {
    name: "checkWatches looks at the caller's own watches",
    reason: 'Up to 3.8 at those of every connection.',
    source: 'docs/protocol/client.md, "Watches"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.checkWatches &&
      apache.error === Code.ok &&
      ours.error === Code.noWatcher &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'checkWatches takes any path',
    reason: '3.8: without a slash −5, empty −121.',
    source: 'seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.checkWatches &&
      !(new RecordReader(step.body).ustring() ?? '/').startsWith('/') &&
      (apache.error === Code.marshalling || apache.error === Code.noWatcher) &&
      (ours.error === Code.noWatcher || ours.error === Code.ok) &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'removeWatches needs a path',
    reason: 'The null path has none: −121; here it is undecodable.',
    source: 'docs/protocol/client.md, "Errors"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.removeWatches &&
      new RecordReader(step.body).ustring() === null &&
      apache.error === Code.noWatcher &&
      ours.error === Code.marshalling &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'watcher types 4 and 5',
    reason: 'Since 3.9.0: persistent and recursive watches by themselves.',
    source: 'docs/protocol/client.md, "Watches"',
    explains: (step, apache, ours) =>
      (step.type === Op.removeWatches || step.type === Op.checkWatches) &&
      apache.error === Code.marshalling &&
      (ours.error === Code.noWatcher || ours.error === Code.ok) &&
      apache.zxid === ours.zxid &&
      isTypeOf39(step),
  },
];

/** Used by the comparison of notifications. */
export const NOTIFICATION_ZXID = {
  name: 'a notification carries the zxid of its transaction',
  reason: '−1 in 3.8; since 3.9.0 the zxid that fired the watch, and −1 only for events replayed by setWatches.',
  source: 'docs/protocol/client.md, "Watches"',
} as const;

/*
 * Not in the script, because the trees would diverge permanently, or because Apache's server does not answer at all:
 *
 * - several watch modes by one connection on one path: up to 3.8 the last wins; since 3.9 they add up and are removed
 *   by type.
 * - order of names in getChildren and getEphemerals, of identities in whoAmI, of events when a session ends: that of
 *   hash tables; here that of creation. Neither is guaranteed.
 * - check outside a multi: up to 3.8.4 never answered.
 * - a null path in a multi: −5, and a zxid may be skipped.
 * - a quota of the root, and an invalid zookeeper_stats: permanently terminate every server, at once or on the next
 *   write below; here BADARGUMENTS.
 * - null or unparsable limits of a quota: with enforceQuota −5 for every write below; here an unparsable number is no
 *   limit.
 * - a null among the persistent watches of a setWatches2: sets a watch, and later fails to close the socket; here it
 *   cannot be decoded.
 * - createContainer in a multi with other flags than 4: up to 3.8.1 creates another kind of znode.
 * - createSession and deleteContainer sent by a client: executed; here UNIMPLEMENTED, and closed.
 * - createTTL with the flags of another mode and a negative TTL: terminates the server; here BADARGUMENTS.
 * - an open connection, when another one resumes its session with a wrong password: closed; here only with the right
 *   password.
 * - exists with a watch on a znode without READ permission: 3.8.0 sets it, newer releases refuse.
 * - setWatches for a znode without READ permission: reports whether it has changed, and sets the watch if not; here
 *   always reported as changed (the time of the change is secret), without a watch.
 */

function hasNullList(step: RequestStep): boolean {
  const reader = new RecordReader(step.body);
  if (step.relativeZxid === null) reader.long();
  while (reader.remaining > 0) if (reader.strings() === null) return true;
  return false;
}

function isTypeOf39(step: RequestStep): boolean {
  const reader = new RecordReader(step.body);
  reader.ustring();
  const watcherType = reader.int();
  return watcherType === 4 || watcherType === 5;
}

/** Damaged requests may have set any ACL in their region; in the guarded region the ACLs are known. */
function mayBeUnreadable(step: RequestStep, guard: Guard): boolean {
  const path = new RecordReader(step.body).ustring() ?? '';
  return path.startsWith('/m') || !guard.canRead(step.slot, path);
}

function isCreate(type: number): boolean {
  return type === Op.create || type === Op.create2 || type === Op.createContainer || type === Op.createTTL;
}

function isFlag(flags: number): boolean {
  return flags >= 0 && flags <= 6;
}

/** Compares each result; where Apache has a create with a path, ours may have a create2 with that path. */
function areSameButForCreate2(apache: string, ours: string): boolean {
  const theirs = apache.split(' <');
  const results = ours.split(' <');
  return (
    theirs.length === results.length &&
    theirs.every((result, i) => {
      const mine = results[i] ?? '';
      return result === mine || result === mine.replace(/15 0 ("[^"]*") \(czxid [^)]*\) >$/, '1 0 $1 >');
    })
  );
}
