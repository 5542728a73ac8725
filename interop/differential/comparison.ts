import { Op } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import type { StepResult } from './generator.ts';
import { Guard } from './guard.ts';
import { KNOWN_DIFFERENCES, NOTIFICATION_ZXID } from './known-differences.ts';
import { type CanonicalNotification, LockstepServer, type Outcome, Silence } from './lockstep-server.ts';
import { name } from './requests.ts';
import { ORACLE_SLOT, SLOTS } from './slots.ts';
import { type RequestStep, type Step, stepText } from './step.ts';

/** The steps that are sent to both servers, in sequence. */
export interface Script {
  /** @returns null at the end; `taken` is the number of steps so far, including those of the comparison itself */
  next(taken: number, guard: Guard): Step | null;
  /** The reference's result of the last step. */
  learn(step: Step, result: StepResult): void;
  /** The arguments that replay this many steps. */
  replay(taken: number): string;
}

export interface ComparisonOptions {
  readonly script: Script;
  /** Apache's server. */
  readonly referencePort: number;
  /** Ours, or a second Apache server, to show that the comparison has no false positives. */
  readonly testedPort: number;
  readonly testedKind: 'apache' | 'meerkat';
  readonly onProgress?: (steps: number) => void;
  /** Without it, the first difference ends the comparison. */
  readonly onDifference?: (difference: DifferenceFound) => void;
  /** Called with every step and the reference's answer. */
  readonly onStep?: (line: string) => void;
}

export interface ComparisonReport {
  readonly steps: number;
  readonly notifications: number;
  /** Number of occurrences of each known difference. */
  readonly differences: ReadonlyMap<string, number>;
  /** Number of results by op and error. */
  readonly outcomes: ReadonlyMap<string, number>;
}

/** The two servers answered differently; the message has the details and how to reproduce it. */
export class DifferenceFound extends Error {}

/** The reference does not answer, so the tested server cannot be compared. */
export class ReferenceSilent extends Error {}

/** The servers have the same clock, but get requests at different times. */
const TIME_TOLERANCE_MS = 60_000n;
const RECENT_STEPS = 12;

/**
 * Sends one script to two servers in lock step, one request at a time over all sessions, so that both see the same
 * total order, and compares their answers.
 */
export async function compareServers(options: ComparisonOptions): Promise<ComparisonReport> {
  const comparison = new Comparison(options);
  try {
    return await comparison.run();
  } finally {
    comparison.destroy();
  }
}

class Comparison {
  readonly #options: ComparisonOptions;
  readonly #reference: LockstepServer;
  readonly #tested: LockstepServer;
  readonly #guard = new Guard();
  readonly #differences = new Map<string, number>();
  readonly #outcomes = new Map<string, number>();
  readonly #recent: string[] = [];
  /** Slots with an undefined order of events, because a session with several ephemerals has ended. */
  readonly #isOrderOpen: boolean[] = Array.from({ length: SLOTS + 1 }, () => false);
  readonly #isConnected: boolean[] = Array.from({ length: SLOTS + 1 }, () => false);
  /** The zxid of the last reply of each slot. */
  readonly #seenZxids: bigint[] = Array.from({ length: SLOTS + 1 }, () => 0n);
  #steps = 0;
  #notifications = 0;
  #zxid = 0n;

  constructor(options: ComparisonOptions) {
    this.#options = options;
    this.#reference = new LockstepServer('the reference (Apache)', options.referencePort, SLOTS + 1);
    this.#tested = new LockstepServer(`the tested server (${options.testedKind})`, options.testedPort, SLOTS + 1);
  }

  destroy(): void {
    this.#reference.destroy();
    this.#tested.destroy();
  }

  async run(): Promise<ComparisonReport> {
    const { script } = this.#options;
    for (let step = script.next(0, this.#guard); step !== null; step = script.next(this.#steps, this.#guard)) {
      await this.#perform(step);
      if (this.#steps % 10_000 === 0) this.#options.onProgress?.(this.#steps);
    }
    // Events still on their way to the sessions.
    await this.#collectNotifications();
    return {
      steps: this.#steps,
      notifications: this.#notifications,
      differences: this.#differences,
      outcomes: this.#outcomes,
    };
  }

  async #perform(step: Step): Promise<void> {
    const [theirs, ours] = await this.#send(step);
    const error = theirs.reply?.error ?? 0;
    this.#guard.learnIdentity(step, error);
    const guardedPaths = step.kind === 'request' ? (step.facts.guardedPaths ?? []) : [];
    for (const path of guardedPaths) await this.#askOracle(path);
    this.#compare(step, theirs, ours);
    if (guardedPaths.length > 0) await this.#collectNotifications();
    this.#options.script.learn(step, this.#resultOf(step, theirs, ours));
  }

  async #send(step: Step): Promise<[Outcome, Outcome]> {
    this.#steps += 1;
    this.#recent.push(`  ${this.#steps}  ${stepText(step)}`);
    if (this.#recent.length > RECENT_STEPS) this.#recent.shift();
    try {
      return await Promise.all([this.#reference.perform(step), this.#tested.perform(step)]);
    } catch (error) {
      if (error instanceof Silence && error.server === this.#reference) throw new ReferenceSilent(error.message);
      throw this.#difference(error instanceof Error ? error.message : String(error), step, null, null);
    }
  }

  /** Reads the current ACL of a guarded znode as the super user. */
  async #askOracle(path: string): Promise<void> {
    const step = request(ORACLE_SLOT, Op.getACL, record().ustring(path).build(), `oracle getACL ${path}`);
    const [theirs, ours] = await this.#send(step);
    this.#compare(step, theirs, ours);
    if (theirs.reply?.error === 0) this.#guard.learnAcl(path, theirs.receivedHex);
  }

  /** Pings every connection: earlier queued events arrive before the reply. */
  async #collectNotifications(): Promise<void> {
    for (let slot = 0; slot < SLOTS; slot++) {
      if (!this.#isConnected[slot]) continue;
      const step: RequestStep = { ...request(slot, Op.ping, Buffer.alloc(0), 'ping'), xid: -2 };
      const [theirs, ours] = await this.#send(step);
      this.#compare(step, theirs, ours);
    }
  }

  #resultOf(step: Step, theirs: Outcome, ours: Outcome): StepResult {
    const reply = theirs.reply;
    const isRefused = step.kind === 'connect' && step.session === 'same' && reply !== null && theirs.isClosed;
    const isClose = step.kind === 'request' && step.type === Op.closeSession && reply?.error === 0;
    return {
      error: reply?.error ?? 0,
      isClosed: theirs.isClosed || ours.isClosed,
      isSessionGone: isRefused || isClose,
      sequentials: [...(reply?.body ?? '').matchAll(/0 "(\/[^"]*\d{10})"|^"(\/[^"]*\d{10})"/g)].map(
        (match) => match[1] ?? match[2] ?? '',
      ),
      zxid: this.#zxid,
    };
  }

  /* ----------------------------------------------------------------------------------------- comparing ---- */

  #compare(step: Step, theirs: Outcome, ours: Outcome): void {
    const what = step.kind === 'request' ? name(step.type) : step.kind;
    const outcome = theirs.reply === null ? 'closed' : String(theirs.reply.error);
    count(this.#outcomes, `${what} ${outcome}`);
    const events = ours.notifications.map(notificationText).join(', ');
    this.#options.onStep?.(`${this.#steps}  ${stepText(step)} → ${outcome} ${theirs.reply?.body ?? ''}  [${events}]`);
    this.#isConnected[step.slot] = !theirs.isClosed && !ours.isClosed;
    const seen = ours.reply?.zxid ?? 0n;
    this.#compareNotifications(step, theirs, ours);
    this.#compareReplies(step, theirs, ours);
    if (seen > 0n) this.#seenZxids[step.slot] = seen;
    if (theirs.isClosed !== ours.isClosed) {
      this.#differ('one server closed the connection, the other did not', step, theirs, ours);
    }
    const isClose = step.kind === 'request' && step.type === Op.closeSession;
    this.#isOrderOpen[step.slot] = false;
    if (isClose) this.#isOrderOpen.fill(true);
  }

  #compareReplies(step: Step, theirs: Outcome, ours: Outcome): void {
    const reference = theirs.reply;
    const tested = ours.reply;
    if (reference === null || tested === null) {
      if (reference === tested) return;
      this.#differ('one server answered, the other closed the connection', step, theirs, ours);
      return;
    }
    if (reference.zxid > this.#zxid) this.#zxid = reference.zxid;
    const isSame =
      reference.xid === tested.xid &&
      reference.error === tested.error &&
      reference.zxid === tested.zxid &&
      reference.body === tested.body;
    if (!isSame) {
      this.#explain(step, theirs, ours);
      return;
    }
    for (const [i, time] of reference.times.entries()) {
      const other = tested.times[i] ?? -1n;
      const distance = time > other ? time - other : other - time;
      if ((time === 0n) !== (other === 0n) || distance > TIME_TOLERANCE_MS) {
        this.#differ(`the times differ: ${time} and ${other}`, step, theirs, ours);
      }
    }
  }

  #explain(step: Step, theirs: Outcome, ours: Outcome): void {
    const reference = theirs.reply;
    const tested = ours.reply;
    if (step.kind === 'request' && this.#options.testedKind === 'meerkat' && reference !== null && tested !== null) {
      const known = KNOWN_DIFFERENCES.find((each) => each.explains(step, reference, tested, this.#guard));
      if (known !== undefined && reference.xid === tested.xid) {
        count(this.#differences, known.name);
        if (reference.zxid > tested.zxid) {
          this.#reference.noteExtraZxid(reference.rawZxid);
          this.#zxid = tested.zxid;
        }
        return;
      }
    }
    this.#differ('the replies differ', step, theirs, ours);
    // With `onDifference` the comparison continues: the zxids are realigned, so that the difference is reported once.
    if (reference !== null && tested !== null && reference.zxid > 0n && tested.zxid > 0n) {
      for (let zxid = tested.zxid; zxid < reference.zxid; zxid++) this.#reference.noteExtraZxid(reference.rawZxid);
      for (let zxid = reference.zxid; zxid < tested.zxid; zxid++) this.#tested.noteExtraZxid(tested.rawZxid);
    }
  }

  #compareNotifications(step: Step, theirs: Outcome, ours: Outcome): void {
    const isClose = step.kind === 'request' && step.type === Op.closeSession;
    const isOpen = isClose || (this.#isOrderOpen[step.slot] ?? false);
    const expected = theirs.notifications;
    this.#notifications += expected.length;
    const reference = expected.map(notificationText);
    const tested = ours.notifications.map(notificationText);
    if (isOpen) {
      reference.sort();
      tested.sort();
    }
    if (reference.join() !== tested.join()) {
      this.#differ('the notifications differ', step, theirs, ours);
    }
    for (const [i, event] of ours.notifications.entries()) {
      if (event.rawZxid === (expected[i]?.rawZxid ?? -1n)) continue;
      // The zxid of a txn between the last reply on this connection and this one.
      const after = this.#seenZxids[step.slot] ?? 0n;
      const until = ours.reply !== null && ours.reply.zxid > 0n ? ours.reply.zxid : event.zxid;
      const isKnown = this.#options.testedKind === 'meerkat' && event.zxid > after && event.zxid <= until;
      if (!isKnown) this.#differ('the zxid of a notification is wrong', step, theirs, ours);
      count(this.#differences, NOTIFICATION_ZXID.name);
    }
  }

  #differ(what: string, step: Step, theirs: Outcome, ours: Outcome): void {
    const difference = this.#difference(what, step, theirs, ours);
    if (this.#options.onDifference === undefined) throw difference;
    this.#options.onDifference(difference);
  }

  #difference(what: string, step: Step, theirs: Outcome | null, ours: Outcome | null): DifferenceFound {
    const { script, testedKind } = this.#options;
    const lines = [
      `${what}, at step ${this.#steps}`,
      `step: ${stepText(step)}`,
      ...outcomeLines('reference', theirs),
      ...outcomeLines('tested', ours),
      'before:',
      ...this.#recent,
      `replay: ${script.replay(this.#steps)}${testedKind === 'apache' ? ' --tested apache' : ''}`,
    ];
    return new DifferenceFound(lines.join('\n'));
  }
}

function outcomeLines(title: string, outcome: Outcome | null): string[] {
  if (outcome === null) return [];
  const reply = outcome.reply;
  const text =
    reply === null
      ? 'closed the connection'
      : `xid ${reply.xid} error ${reply.error} zxid ${reply.zxid} (its own ${reply.rawZxid}) ${reply.body}`;
  return [
    `${title}: ${text}${outcome.isClosed ? ' (closed)' : ''}`,
    ...outcome.notifications.map((event) => `  before it: ${notificationText(event)} zxid ${event.rawZxid}`),
    `  sent     ${outcome.sentHex}`,
    `  received ${outcome.receivedHex}`,
  ];
}

const EVENT_NAMES: Readonly<Record<number, string>> = { 1: 'created', 2: 'deleted', 3: 'changed', 4: 'children' };

function notificationText(event: CanonicalNotification): string {
  return `${EVENT_NAMES[event.type] ?? event.type} ${JSON.stringify(event.path)} state ${event.state}`;
}

function request(slot: number, type: number, body: Buffer, text: string): RequestStep {
  return { kind: 'request', slot, type, xid: null, body, relativeZxid: null, text, facts: {} };
}

function count(counts: Map<string, number>, key: string, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
