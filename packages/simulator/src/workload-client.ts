import type { ConnectOptions } from '@meerkat/client';
import type { Identity } from './checkers/access.ts';
import type { History, MultiPart, Operation, OperationRequest } from './history.ts';
import { HistoryTap } from './history-tap.ts';
import { RecordedClient } from './recorded-client.ts';
import type { SeededRandom } from './seeded-random.ts';
import { certificateOf, credentialsOf } from './users.ts';
import type { WorkloadAcls } from './workload-acls.ts';
import type { WorkloadHost } from './workload-host.ts';
import type { Meetings } from './workload-meetings.ts';
import { OVERLONG_PATH, type WorkloadOptions } from './workload-options.ts';
import { limitsPathOf } from './workload-quotas.ts';
import { ROOT, WorkloadRequests } from './workload-requests.ts';

/** One client of a workload: sends a request, sometimes before the last reply has arrived, and pauses. */
export class WorkloadClient {
  readonly host: string;
  readonly #world: WorkloadHost;
  readonly #history: History;
  readonly #options: WorkloadOptions;
  readonly #identity: Identity;
  readonly #random: SeededRandom;
  readonly #requests: WorkloadRequests;
  readonly #meetings: Meetings;
  /** Programs of this host, each under its own name: the one that works, and the one that takes over from it. */
  readonly #programs: [Program, Program];
  #recorded: RecordedClient | null = null;
  #isOver = false;
  #outstanding = 0;
  #onAnswer: (() => void) | null = null;
  /** The last ephemeral znode of its session. */
  #ephemeral: string | null = null;
  readonly #watches: { readonly path: string; readonly end: () => void }[] = [];

  constructor(
    host: string,
    identity: Identity,
    acls: WorkloadAcls | null,
    world: WorkloadHost,
    history: History,
    options: WorkloadOptions,
    nextConnection: () => number,
    meetings: Meetings,
  ) {
    this.#meetings = meetings;
    this.host = host;
    this.#world = world;
    this.#history = history;
    this.#options = options;
    this.#random = world.random.fork(`workload ${host}`);
    this.#identity = identity;
    this.#requests = new WorkloadRequests(host, acls, this.#random, options);
    const makeProgram = (name: string): Program => {
      history.identities.set(name, identity);
      return { name, tap: new HistoryTap(history, name, nextConnection) };
    };
    this.#programs = [makeProgram(host), makeProgram(`${host}b`)];
  }

  get isConnected(): boolean {
    return this.#recorded?.client.state === 'connected';
  }

  /** Until when it is sure that this session lives, by its host's clock; −∞ when the session is not its own. */
  sureUntilMs(sessionId: bigint): number {
    const client = this.#recorded?.client;
    return client?.session?.id === sessionId ? client.lostAtMs : Number.NEGATIVE_INFINITY;
  }

  /** Everything that it could watch, parents first. */
  get watchable(): readonly string[] {
    const keys = Array.from({ length: this.#options.keys }, (_, i) => `${ROOT}/${i}`);
    return [ROOT, ...keys.flatMap((key) => [key, `${key}/0`, `${key}/1`])];
  }

  /** Where the limits of a quota may stand. */
  get quotaLimits(): readonly string[] {
    if (!this.#options.hasQuotas) return [];
    return Array.from({ length: this.#options.keys }, (_, i) => limitsPathOf(`${ROOT}/${i}`));
  }

  async run(): Promise<void> {
    const meanMs = 1000 / this.#options.operationsPerSecond;
    while (!this.#isOver) {
      const recorded = this.#recorded ?? (await this.#connect());
      while (this.#outstanding >= this.#options.outstandingMax) await this.#nextAnswer();
      if (this.#isOver) break;
      if (this.#meetings.next === null) await this.#act(recorded);
      else await this.#meet(recorded);
      // Exponential pauses: some requests come close together, some far apart.
      await this.#world.sleep(-Math.log(1 - this.#random.fraction()) * meanMs);
    }
    while (this.#outstanding > 0) await this.#nextAnswer();
  }

  /** Sends no more requests; its watches stay. */
  stop(): void {
    this.#isOver = true;
  }

  /** Waits until the server that it is connected to has all of its watches. */
  async settle(): Promise<void> {
    const recorded = this.#recorded;
    if (recorded === null) return;
    for (;;) {
      const { result } = await recorded.call({ op: 'sync', path: ROOT });
      if (result !== null || recorded.client.state === 'closed') return;
      await this.#world.sleep(20);
    }
  }

  async close(): Promise<void> {
    this.#endWatches();
    await this.#recorded?.close();
    this.#recorded = null;
  }

  async #connect(session?: ConnectOptions['session']): Promise<RecordedClient> {
    this.#ephemeral = null;
    this.#recorded = await this.#open(this.#programs[0], session);
    return this.#recorded;
  }

  #drawTimeoutMs(): number {
    return this.#random.between(this.#options.sessionTimeoutMinMs, this.#options.sessionTimeoutMaxMs);
  }

  async #open(
    { name, tap }: Program,
    session?: ConnectOptions['session'],
    sessionTimeoutMs: number = this.#drawTimeoutMs(),
  ): Promise<RecordedClient> {
    const { readOnlyChance } = this.#options;
    const client = await this.#world.connect(
      this.host,
      {
        sessionTimeoutMs,
        attemptTimeoutMs: 500,
        backOff: { minMs: 20, maxMs: 500 },
        connectTimeoutMs: NEVER_MS,
        session,
        canBeReadOnly: readOnlyChance > 0 && this.#random.chance(readOnlyChance),
        ...credentialsOf(this.#identity),
      },
      tap.makeTap,
      certificateOf(this.#identity),
    );
    return new RecordedClient(client, name, this.#history, tap);
  }

  async #act(recorded: RecordedClient): Promise<void> {
    const random = this.#random;
    const { abandonChance, crowdChance, hugeSessionSize, overlongChance, rewriteChance } = this.#options;
    if (crowdChance > 0 && random.chance(crowdChance)) {
      await this.#crowd(recorded);
      return;
    }
    if (hugeSessionSize > 0 && random.chance(HUGE_CHANCE)) {
      await this.#makeHuge(recorded, hugeSessionSize);
      return;
    }
    if (overlongChance > 0 && random.chance(overlongChance)) {
      void this.#ask(recorded, { op: 'exists', path: OVERLONG_PATH, hasWatch: false, isLinearizable: false });
      return;
    }
    if (rewriteChance > 0 && random.chance(rewriteChance)) {
      void this.#ask(recorded, this.#requests.rewrite());
      return;
    }
    if (abandonChance > 0 && random.chance(abandonChance)) {
      await this.#abandon();
      return;
    }
    if (random.chance(MEETING_CHANCE)) this.#meetings.call(this.#requests.key(), this.#world.sleep(MEETING_DELAY_MS));
    const dice = random.fraction();
    if (dice < 0.005) {
      // The session ends, and the next action begins another.
      this.#endWatches();
      this.#recorded = null;
      await recorded.close();
    } else if (dice < 0.009) await this.#passOn(recorded);
    else if (dice < 0.024) {
      await recorded.client.moveTo(null, { timeoutMs: 2000 }).catch(() => {});
    } else if (dice < 0.034) this.#watchForAWhile(recorded);
    else if (dice < 0.044) await this.#succeed(recorded);
    else {
      const timeoutMs = random.chance(0.03) ? random.between(20, 2000) : null;
      const isFirst = this.#history.operations.length < this.#options.clients * 2;
      const watched = this.#watches.map(({ path }) => path);
      const answered = this.#ask(recorded, this.#requests.draw(isFirst, watched), timeoutMs);
      if (random.chance(0.5)) await answered;
    }
  }

  /** Comes to the meeting that has been called, and writes there when it begins. */
  async #meet(recorded: RecordedClient): Promise<void> {
    const meeting = this.#meetings.next;
    if (meeting === null) return;
    await meeting.begins;
    const requests = this.#requests.writesTo(meeting.path, this.#random.between(1, 3));
    for (const request of requests) void this.#ask(recorded, request);
  }

  #ask(recorded: RecordedClient, request: OperationRequest, timeoutMs: number | null = null): Promise<void> {
    this.#outstanding++;
    return recorded
      .call(request, timeoutMs)
      .then((operation) => this.#onAnswered(operation))
      .catch((error: unknown) => this.#world.fail(error));
  }

  /** Ephemerals of long names below some of the znodes; all at once, so that its session may end among them. */
  async #crowd(recorded: RecordedClient): Promise<void> {
    const asked = Array.from({ length: CROWD }, () => {
      const path = `${this.#random.chance(0.3) ? ROOT : this.#requests.path()}/${CROWD_NAME}`;
      const data = this.#requests.value();
      return this.#ask(recorded, { op: 'create', path, data, mode: 'ephemeral', isSequential: true });
    });
    await Promise.all(asked);
  }

  /** Thousands of ephemerals, of which many come in one txn. Its session may end among them. */
  async #makeHuge(recorded: RecordedClient, size: number): Promise<void> {
    const path = `${ROOT}/e-`;
    for (let made = 0; made < size; made += HUGE_PARTS) {
      const length = Math.min(HUGE_PARTS, size - made);
      const parts = Array.from({ length }, (): MultiPart => {
        return { op: 'create', path, data: '', mode: 'ephemeral', isSequential: true };
      });
      await this.#ask(recorded, { op: 'multi', parts });
    }
  }

  /**
   * Another process takes over: with its own session it replaces the last one's ephemeral znode while the last one
   * disconnects.
   */
  async #succeed(recorded: RecordedClient): Promise<void> {
    const random = this.#random;
    this.#programs.reverse();
    const successor = await this.#open(this.#programs[0]);
    const path = this.#ephemeral ?? this.#requests.path();
    const create = {
      op: 'create',
      path,
      data: this.#requests.value(),
      mode: 'ephemeral',
      isSequential: false,
    } as const;
    if (this.#ephemeral === null) await this.#ask(recorded, create);
    this.#endWatches();
    this.#recorded = successor;
    const remove = { op: 'delete', path, version: -1 } as const;
    const again = { ...create, data: this.#requests.value() };
    const taken = random.chance(0.5)
      ? [this.#ask(successor, { op: 'multi', parts: [remove, again] })]
      : [this.#ask(successor, remove), this.#ask(successor, again)];
    if (random.chance(0.5)) await this.#world.sleep(2 * random.fraction());
    await Promise.all([...taken, recorded.close()]);
    this.#ephemeral = path;
  }

  /** The process ends, and another one may resume its session. */
  async #passOn(recorded: RecordedClient): Promise<void> {
    this.#endWatches();
    this.#recorded = null;
    // What is in flight is answered or lost; a detached client sends nothing more.
    const session = await recorded.client.detach({ timeoutMs: 2000 }).catch(() => undefined);
    if (session === undefined) await recorded.close();
    else if (this.#random.chance(0.7)) await this.#connect(session);
  }

  /** The sessions of a process that dies: they become due within a few ticks. */
  async #abandon(): Promise<void> {
    const timeoutMs = this.#drawTimeoutMs();
    for (let left = 0; left < ABANDONED; left++) {
      const recorded = await this.#open(this.#programs[1], undefined, timeoutMs);
      const path = `${ROOT}/q-`;
      await this.#ask(recorded, {
        op: 'create',
        path,
        data: this.#requests.value(),
        mode: 'ephemeral',
        isSequential: true,
      });
      const session = await recorded.client.detach({ timeoutMs: 2000 }).catch(() => undefined);
      if (session === undefined) await recorded.close();
    }
  }

  #watchForAWhile(recorded: RecordedClient): void {
    const path = this.#requests.path();
    const { armed, end } = recorded.watch(path, this.#random.chance(0.5));
    this.#outstanding++;
    armed.then((operation) => this.#onAnswered(operation)).catch((error: unknown) => this.#world.fail(error));
    this.#watches.push({ path, end });
    if (this.#watches.length > WATCHES_MAX) this.#watches.shift()?.end();
  }

  #endWatches(): void {
    for (const { end } of this.#watches.splice(0)) end();
  }

  #onAnswered(operation: Operation): void {
    this.#outstanding--;
    this.#onAnswer?.();
    this.#onAnswer = null;
    this.#requests.onAnswered(operation);
    const { request, result } = operation;
    if (result?.op !== 'create' || request.op !== 'create' || request.isSequential) return;
    if (request.mode === 'ephemeral') this.#ephemeral = result.path;
  }

  #nextAnswer(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
    });
  }
}

/** A process on the client's host, as the history knows it. */
interface Program {
  readonly name: string;
  readonly tap: HistoryTap;
}

const WATCHES_MAX = 2;
/** Of all that a client does. */
const MEETING_CHANCE = 0.03;
const MEETING_DELAY_MS = 100;
const CROWD = 20;
/** Of all that a client does. */
const HUGE_CHANCE = 0.003;
/** More than a server applies in one turn. */
const HUGE_PARTS = 2500;
const ABANDONED = 15;
const CROWD_NAME = `${'crowd-'.repeat(30)}-`;
/** A client of a simulation waits for its servers as long as it takes. */
const NEVER_MS = 2 ** 31;
