import { AbortedError, type CallOptions, type Client } from '@meerkat/client';
import { firstAbortOf } from '../kernel/abort.ts';
import { Attempt } from '../kernel/attempt.ts';
import { contend } from '../kernel/contender.ts';
import { Holding } from '../kernel/holding.ts';
import { type Contending, inspect, type Line } from '../kernel/line.ts';
import type { SharedHeldOptions } from '../kernel/options.ts';
import { sharedLockSettings } from '../kernel/settings.ts';
import { makeMutexLine } from '../locks/mutex.ts';
import { observeLeader } from './observe-leader.ts';

export interface ElectionOptions extends SharedHeldOptions {
  /** Who we are, for those who ask for the leader. Default ''. */
  readonly id?: string | undefined;
  /** Which of Curator's two elections: LeaderLatch (the default) or LeaderSelector. kazoo has one. */
  readonly style?: 'latch' | 'selector' | undefined;
}

/** A client that leads or wants to. */
export interface Candidate {
  readonly id: string;
  readonly path: string;
  readonly isLeader: boolean;
  readonly sessionId: bigint;
  /** Larger than that of every leader before, should it come to lead. */
  readonly token: bigint;
  /** Since when it is a candidate, by the clock of the servers. */
  readonly since: Date;
}

export interface RunOptions {
  /** Ends it: a candidate withdraws; the `signal` of a leader aborts, and what it does is waited for. */
  readonly signal?: AbortSignal | undefined;
  /** Stands for election again when leadership ends, until `signal` is aborted. Default false. */
  readonly repeats?: boolean | undefined;
}

/**
 * Chooses one of several processes to lead, in the order of candidature.
 *
 * @example
 * const election = new Election(client, '/election', { id: 'host-1' });
 * await using leadership = await election.campaign();
 * await leadership.guarded.set('/plan', 'mine');
 */
export class Election {
  readonly path: string;
  readonly #client: Client;
  readonly #line: Line;

  constructor(client: Client, path: string, options: ElectionOptions = {}) {
    const { id = '', style = 'latch' } = options;
    this.path = path;
    this.#client = client;
    if (!STYLES.includes(style)) throw new RangeError(`there is no style '${style}'; there are 'latch', 'selector'`);
    const line = makeMutexLine(path, sharedLockSettings({ ...options, data: id }));
    const marker = line.layout === 'curator' && style === 'latch' ? LATCH_MARKER : line.marker;
    this.#line = { ...line, marker, markers: [marker], firstDoes: 'leads' };
  }

  /**
   * Waits until we lead. `release` of what it resolves with resigns.
   *
   * @throws AbortedError, TimeoutError: we are no candidate any more
   */
  async campaign(options: CallOptions = {}): Promise<Holding> {
    const about = { operation: 'Election.campaign', path: this.path };
    const attempt = new Attempt(this.#client, options, about, { awaitsQuorum: true });
    const place = await attempt.run(() => contend(this.#line, attempt));
    return new Holding(this.#client, place, { marginMs: this.#line.marginMs });
  }

  /**
   * Waits until we lead, leads, and resigns when `lead` has ended.
   *
   * @param lead ends soon when `leadership.signal` is aborted: leadership is lost, or `options.signal` was aborted
   * @returns what `lead` returned last; null when we never led
   * @throws what `lead` throws, and what keeps us from being a candidate or from resigning
   */
  async run<T>(lead: (leadership: Leadership) => Promise<T>, options: RunOptions = {}): Promise<T | null> {
    const { signal, repeats = false } = options;
    let result: T | null = null;
    while (signal?.aborted !== true) {
      let holding: Holding;
      try {
        holding = await this.campaign({ signal });
      } catch (error) {
        if (error instanceof AbortedError) break;
        throw error;
      }
      const isOver = signal === undefined ? holding.signal : firstAbortOf([holding.signal, signal]);
      try {
        result = await lead(leadershipOf(holding, isOver));
      } catch (error) {
        // The first failure is reported.
        await holding.release().catch(() => {});
        throw error;
      }
      await holding.release();
      if (!repeats) break;
    }
    return result;
  }

  /** Who leads; null when no client does. */
  async leader(options?: CallOptions): Promise<Candidate | null> {
    const [first] = await this.candidates(options);
    return first ?? null;
  }

  /** Who leads and who would be next, in this order. */
  async candidates(options?: CallOptions): Promise<readonly Candidate[]> {
    return (await inspect(this.#client, this.#line, options)).map(asCandidate);
  }

  /**
   * The leader now, and then each change; null while there is none. A leader may be reported here before it knows itself that
   * it leads. Goes through lost connections and sessions; ends with the signal, and with the client.
   *
   * @example
   * for await (const leader of election.observe()) console.log(leader?.id ?? 'nobody', 'leads');
   */
  observe(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<Candidate | null> {
    return observeLeader(this.#client, this.#line, options.signal, asCandidate);
  }
}

/** What a leader is given. */
export interface Leadership {
  /** What `campaign` resolves with. */
  readonly holding: Holding;
  /** The znode of the candidate. */
  readonly path: string;
  /** Aborts when it has to end. */
  readonly signal: AbortSignal;
  /** Larger than that of every leader before. */
  readonly token: bigint;
  /** Whether we lead for certain, at this moment. */
  readonly isHeld: boolean;
  /** Writes that the service refuses once we do not lead. */
  readonly guarded: Holding['guarded'];
}

function leadershipOf(holding: Holding, signal: AbortSignal): Leadership {
  const { path, token, guarded } = holding;
  return {
    holding,
    path,
    signal,
    token,
    guarded,
    get isHeld() {
      return holding.isHeld;
    },
  };
}

function asCandidate({ path, data, isFirst, sessionId, token, since }: Contending): Candidate {
  return { id: LENIENT.decode(data), path, isLeader: isFirst, sessionId, token, since };
}

/** Others may write what is no text; the leader is reported all the same. */
const LENIENT = new TextDecoder('utf-8', { ignoreBOM: true });

const STYLES: readonly string[] = ['latch', 'selector'];
const LATCH_MARKER = 'latch-';
