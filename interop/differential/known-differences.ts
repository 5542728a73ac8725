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
  /** Where the fact stands. */
  readonly source: string;
  /** True when the two replies differ in nothing but this. */
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

/** The character of the vocabulary that needs two Java chars, and how its two halves look when they are read as UTF-8. */
const SUPPLEMENTARY = '\u{1f600}';
const HALVES = '\ufffd'.repeat(6);

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    name: 'a write that cannot be decoded takes no zxid',
    reason: '3.8 logs it as a failed transaction; newer releases answer with the zxid they have.',
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
    reason: 'Apache gives it a zxid and fails later, with −8 where it validates the path and −5 where it does not.',
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
    reason: 'Up to 3.8.1 it is an error of that op only (−8); since 3.8.2 the whole request is refused with −5.',
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
    reason: '3.8.0 refuses the whole request with −5; since 3.8.2 the create with flags 5 or 6 is one bad op, −8.',
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
    reason: 'Up to 3.8.1 it becomes a create, whose result has the path only; since 3.8.2 the Stat follows.',
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
    reason: 'Apache takes a null id for an empty one with the scheme auth (as we do); with others it runs into it: −5.',
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
    reason: '3.8 knows IPv4 alone (−114); newer releases of the 3.9 line read both.',
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
    reason: 'Java reads the digits of every script, so that an ACL may look like another address than it means.',
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
    reason: 'Apache runs into the null list of a setWatches and answers −5; no client sends one.',
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
    reason: 'Apache sends the results up to the null path behind the error −5; no client reads them.',
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
    reason: 'Apache does not look at it and sends the null back; to us a null path is undecodable everywhere.',
    source: 'docs/protocol/client.md, "Errors"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.sync && apache.body === 'null' && ours.error === Code.marshalling && apache.zxid === ours.zxid,
  },
  {
    name: 'text beyond the basic plane is written as UTF-8',
    reason: 'Apache writes each half of a Java surrogate pair in three bytes, which is no UTF-8; it reads ours.',
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
    reason: 'Java puts fewer U+FFFD in the place of some of them. No path may hold one, so that only an echo shows it.',
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
    reason:
      'Apache takes the Stat first, and then counts what the quota is about: it has the length of the data in the request.',
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
    reason: 'Apache compares texts and counts the root among its own descendants when it is asked for "".',
    source: 'docs/protocol/client.md, "Operations"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.getAllChildrenNumber &&
      new RecordReader(step.body).ustring() === '' &&
      Number(apache.body) === Number(ours.body) + 1 &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'exists needs READ',
    reason:
      "Since 3.8.4 and 3.9.2 exists of a znode that one may not read is NOAUTH; Debian's 3.8.0 tells its Stat, " +
      'though it has the other half of that change: no watch event either way.',
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
    reason: '3.8 answers OK when any connection watches the path; since 3.9.0 it is about the connection that asks.',
    source: 'docs/protocol/client.md, "Watches"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.checkWatches &&
      apache.error === Code.ok &&
      ours.error === Code.noWatcher &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'checkWatches takes any path',
    reason:
      '3.8 goes up the path for recursive watches: of a path without a slash it answers −5, of the empty one −121.',
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
    reason:
      'Apache looks for watches of the null path and finds none: −121; to us a null path is undecodable everywhere.',
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
    reason: 'Persistent and recursive watches can be named one by one since 3.9.0; 3.8 does not know the types.',
    source: 'docs/protocol/client.md, "Watches"',
    explains: (step, apache, ours) =>
      (step.type === Op.removeWatches || step.type === Op.checkWatches) &&
      apache.error === Code.marshalling &&
      (ours.error === Code.noWatcher || ours.error === Code.ok) &&
      apache.zxid === ours.zxid &&
      isTypeOf39(step),
  },
];

/** Seen by the comparison of notifications. */
export const NOTIFICATION_ZXID = {
  name: 'a notification carries the zxid of its transaction',
  reason: '−1 in 3.8; since 3.9.0 the zxid that fired the watch, and −1 only for events replayed by setWatches.',
  source: 'docs/protocol/client.md, "Watches"',
} as const;

/**
 * What the script leaves out, because the two releases would part for good, or because Apache does not answer at all.
 */
export const NOT_COMPARED: readonly { readonly what: string; readonly reason: string; readonly source: string }[] = [
  {
    what: 'several modes of watch by one connection on one path, and removing one of them by type',
    reason: 'Up to 3.8 the mode set last wins; since 3.9 a connection has a set of modes for each path.',
    source: 'docs/protocol/client.md, "Watches"',
  },
  {
    what: 'orders: of the names in getChildren and getEphemerals, of the identities in whoAmI, of the events at the end of a session',
    reason: 'Those of hash tables in Apache, of creation here. Neither is promised.',
    source: 'docs/protocol/quorum.md, "Sessions"',
  },
  {
    what: 'check outside a multi',
    reason: 'Up to 3.8.4 it is accepted and never answered.',
    source: 'docs/protocol/client.md, "Operations"',
  },
  {
    what: 'a null path in a multi',
    reason: "Apache's server answers −5 and may skip a zxid without a transaction.",
    source: 'docs/protocol/client.md, "Errors"; seen with 3.8.0',
  },
  {
    what: 'a quota of the root, and text in a zookeeper_stats that is none of a quota',
    reason: "End Apache's process for good: applying the first, or the next write below the second; see above.",
    source: 'seen with 3.8.0',
  },
  {
    what: 'limits of a quota that cannot be read, or are null',
    reason: "With enforceQuota Apache's server answers −5 to every write below; to us what is no number is no limit.",
    source: 'seen with 3.8.0',
  },
  {
    what: 'a null among the persistent watches of a setWatches2',
    reason:
      "Apache's server sets a watch on it, and when the connection ends it fails to close the socket; to us it is undecodable.",
    source: 'seen with 3.8.0',
  },
  {
    what: 'createContainer in a multi with other flags than 4',
    reason: 'Up to 3.8.1 it creates a znode of another kind.',
    source: 'docs/protocol/client.md, "Multi"',
  },
  {
    what: 'createSession and deleteContainer sent by a client',
    reason: 'Internal to the server; Apache lets them through, we refuse them.',
    source: 'docs/protocol/client.md, "Operations"',
  },
  {
    what: 'createTTL with the flags of another kind and a negative TTL',
    reason: "Accepted by Apache's preparation, and applying the transaction then ends its process.",
    source: 'docs/protocol/client.md, "Operations"; seen with 3.8.0',
  },
  {
    what: 'what happens to the open connection of a session when another one asks for it with a wrong password',
    reason:
      'Apache closes it before it looks at the password, so that a guessed id is enough to cut a client off; we do not.',
    source: 'docs/protocol/client.md, "Connecting"',
  },
  {
    what: 'exists that leaves a watch on a znode that one may not read',
    reason: '3.8.0 registers the watch, newer releases refuse.',
    source: 'docs/protocol/client.md, "Order of checks"',
  },
  {
    what: 'setWatches for a znode that one may not read',
    reason: 'Apache says whether it has changed since the zxid that the client names; to us it always has, see above.',
    source: 'docs/protocol/client.md, "Watches"',
  },
];

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

/** Damaged requests may have made any list in their region; in the guarded one the lists are known. */
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

/** Compares result by result; where Apache has a create with a path, ours may have a create2 with that path. */
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
