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

const Code = { ok: 0, marshalling: -5, badArguments: -8, noAuth: -102, noWatcher: -121 } as const;

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    name: 'a write that cannot be decoded takes no zxid',
    reason: '3.8 logs it as a failed transaction; newer releases answer with the zxid they have.',
    source: 'server-semantics §1, "undecodable write body"',
    explains: (step, apache, ours) =>
      WRITES.has(step.type) &&
      ours.error === Code.marshalling &&
      apache.error === Code.marshalling &&
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
    name: 'exists needs READ',
    reason: 'Since 3.8.4 and 3.9.2 exists of a znode that one may not read is NOAUTH; 3.8.0 tells its Stat.',
    source: 'server-semantics §5, read ops, exists',
    explains: (step, apache, ours, guard) =>
      step.type === Op.exists &&
      apache.error === Code.ok &&
      ours.error === Code.noAuth &&
      ours.body === '' &&
      apache.zxid === ours.zxid &&
      !guard.canRead(step.slot, new RecordReader(step.body).ustring() ?? ''),
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

/** Differences of watch events; the comparison of notifications knows them. */
export const KNOWN_NOTIFICATION_DIFFERENCES = {
  zxid: {
    name: 'a notification carries the zxid of its transaction',
    reason: '−1 in 3.8; since 3.9.0 the zxid that fired the watch, and −1 only for events replayed by setWatches.',
    source: 'client-protocol §9',
  },
  filter: {
    name: 'a notification needs READ',
    reason: 'Since 3.8.4 and 3.9.2 the event is dropped where the watching connection may not read the znode.',
    source: 'client-protocol §9',
  },
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
    what: 'exists that leaves a watch on a znode that one may not read',
    reason: '3.8.0 registers the watch, newer releases refuse.',
    source: 'server-semantics §5, read ops, exists',
  },
];

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
