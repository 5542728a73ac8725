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

const Code = { ok: 0, marshalling: -5, badArguments: -8, noAuth: -102, invalidAcl: -114, noWatcher: -121 } as const;

/** The character of the vocabulary that needs two Java chars, and how its two halves look when they are read as UTF-8. */
const SUPPLEMENTARY = '\u{1f600}';
const HALVES = '\ufffd'.repeat(6);

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    name: 'a write that cannot be decoded takes no zxid',
    reason: '3.8 logs it as a failed transaction; newer releases answer with the zxid they have.',
    source: 'server-semantics §1, "undecodable write body"',
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
    source: 'client-protocol §6.4, server-semantics §2',
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
    source: 'client-protocol §8, "illegal flag"',
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
    source: 'client-protocol §8, "1, 15, 19 with flags 5/6"; seen with 3.8.0',
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
    source: 'client-protocol §8, "1, 15, 19 with flags 0–3"',
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
    source: 'server-semantics §8, fix-up',
    explains: (step, apache, ours) =>
      WRITES.has(step.type) &&
      apache.error === Code.marshalling &&
      (ours.error === Code.invalidAcl || (step.type === Op.multi && ours.body.includes('<-1 -114'))) &&
      apache.zxid === ours.zxid &&
      (step.facts.isDamaged === true || step.text.includes(':null')),
  },
  {
    name: 'a null list of watches is an empty one',
    reason: 'Apache runs into the null list of a setWatches and answers −5; no client sends one.',
    source: 'client-protocol §1, vector; seen with 3.8.0',
    explains: (step, apache, ours) =>
      (step.type === Op.setWatches || step.type === Op.setWatches2) &&
      step.text.includes('[null,') &&
      apache.error === Code.marshalling &&
      ours.error === Code.ok &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'a multiRead that fails as a whole has no body',
    reason: 'Apache sends the results up to the null path behind the error −5; no client reads them.',
    source: 'client-protocol §2, S→C; seen with 3.8.0',
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
    source: 'client-protocol §6.4; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.sync && apache.body === 'null' && ours.error === Code.marshalling && apache.zxid === ours.zxid,
  },
  {
    name: 'text beyond the basic plane is written as UTF-8',
    reason: 'Apache writes each half of a Java surrogate pair in three bytes, which is no UTF-8; it reads ours.',
    source: 'client-protocol §1, ustring',
    explains: (step, apache, ours) =>
      (step.type === Op.getACL || step.type === Op.sync) &&
      apache.error === Code.ok &&
      ours.error === Code.ok &&
      apache.body.replaceAll(HALVES, SUPPLEMENTARY) === ours.body &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'getAllChildrenNumber of the empty path is that of the root',
    reason: 'Apache compares texts and counts the root among its own descendants when it is asked for "".',
    source: 'client-protocol §4, notes; seen with 3.8.0',
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
    source: 'server-semantics §5, read ops, exists',
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
    source: 'client-protocol §7, "checkWatches / removeWatches"; seen with 3.8.0',
    explains: (step, apache, ours) =>
      step.type === Op.checkWatches &&
      apache.error === Code.ok &&
      ours.error === Code.noWatcher &&
      apache.zxid === ours.zxid,
  },
  {
    name: 'watcher types 4 and 5',
    reason: 'Persistent and recursive watches can be named one by one since 3.9.0; 3.8 does not know the types.',
    source: 'client-protocol §7, WatcherType',
    explains: (step, apache, ours) =>
      (step.type === Op.removeWatches || step.type === Op.checkWatches) &&
      (step.facts.watcherType === 4 || step.facts.watcherType === 5) &&
      apache.error === Code.marshalling &&
      ours.error === Code.noWatcher &&
      apache.zxid === ours.zxid,
  },
];

/** Seen by the comparison of notifications. */
export const NOTIFICATION_ZXID = {
  name: 'a notification carries the zxid of its transaction',
  reason: '−1 in 3.8; since 3.9.0 the zxid that fired the watch, and −1 only for events replayed by setWatches.',
  source: 'client-protocol §9',
} as const;

/**
 * What the script leaves out, because the two releases would part for good, or because Apache does not answer at all.
 */
export const NOT_COMPARED: readonly { readonly what: string; readonly reason: string; readonly source: string }[] = [
  {
    what: 'several modes of watch by one connection on one path, and removing one of them by type',
    reason: 'Up to 3.8 the mode set last wins; since 3.9 a connection has a set of modes for each path.',
    source: 'client-protocol §7, "mode combination"',
  },
  {
    what: 'check outside a multi',
    reason: 'Up to 3.8.4 it is accepted and never answered.',
    source: 'client-protocol §4, op 13',
  },
  {
    what: 'a null path in a multi',
    reason: "Apache's server answers −5 and may skip a zxid without a transaction.",
    source: 'client-protocol §6.4; seen with 3.8.0',
  },
  {
    what: 'createContainer in a multi with other flags than 4',
    reason: 'Up to 3.8.1 it creates a znode of another kind.',
    source: 'client-protocol §8',
  },
  {
    what: 'createSession and deleteContainer sent by a client',
    reason: 'Internal to the server; Apache lets them through, we refuse them.',
    source: 'client-protocol §4, notes',
  },
  {
    what: 'createTTL with the flags of another kind and a negative TTL',
    reason: "Accepted by Apache's preparation, and applying the transaction then ends its process.",
    source: 'client-protocol §4, "create flags vs opcode"; seen with 3.8.0',
  },
  {
    what: 'what happens to the open connection of a session when another one asks for it with a wrong password',
    reason:
      'Apache closes it before it looks at the password, so that whoever guesses an id cuts a client off; we do not.',
    source: 'client-protocol §3, rows 7 and 8',
  },
  {
    what: 'exists that leaves a watch on a znode that one may not read',
    reason: '3.8.0 registers the watch, newer releases refuse.',
    source: 'server-semantics §5, read ops, exists',
  },
];

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
