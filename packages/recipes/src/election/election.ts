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
  /** Our id, as reported to callers of `leader`. Default ''. */
  readonly id?: string | undefined;
  /** Which of Curator's two elections: LeaderLatch (the default) or LeaderSelector. kazoo has one. */
  readonly style?: 'latch' | 'selector' | undefined;
}

/** A client that leads or is a candidate. */
export interface Candidate {
  readonly id: string;
  readonly path: string;
  readonly isLeader: boolean;
  readonly sessionId: bigint;
  /** The token it has, or will have, as leader: larger than that of every earlier leader. */
  readonly token: bigint;
  /** When it became a candidate, by the clock of the servers. */
  readonly since: Date;
}

export interface RunOptions {
  /** Stops: a candidate withdraws; the `signal` of a leader aborts, and its work is awaited. */
  readonly signal?: AbortSignal | undefined;
  /** Campaigns again when leadership ends, until `signal` is aborted. Default false. */
  readonly repeats?: boolean | undefined;
}

/**
 * Elects one of several processes as leader, in the order of candidature.
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
   * Waits until we lead. `release` of the returned holding resigns.
   *
   * @throws AbortedError, TimeoutError: we are no longer a candidate
   */
  async campaign(options: CallOptions = {}): Promise<Holding> {
    const about = { operation: 'Election.campaign', path: this.path };
    const attempt = new Attempt(this.#client, options, about, { awaitsQuorum: true });
    const place = await attempt.run(() => contend(this.#line, attempt));
    return new Holding(this.#client, place, { marginMs: this.#line.marginMs });
  }

  /**
   * Waits until we lead, calls `lead`, and resigns when it has ended.
   *
   * @param lead should end soon after `leadership.signal` is aborted: leadership is lost, or `options.signal` was
   *   aborted
   * @returns the last result of `lead`; null when we never led
   * @throws what `lead` throws, and errors that prevent candidature or resignation
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
        // The error of `lead` takes precedence.
        await holding.release().catch(() => {});
        throw error;
      }
      await holding.release();
      if (!repeats) break;
    }
    return result;
  }

  /** The leader; null when there is none. */
  async leader(options?: CallOptions): Promise<Candidate | null> {
    const [first] = await this.candidates(options);
    return first ?? null;
  }

  /** The leader and the candidates after it, in order. */
  async candidates(options?: CallOptions): Promise<readonly Candidate[]> {
    return (await inspect(this.#client, this.#line, options)).map(asCandidate);
  }

  /**
   * The current leader, and then each change; null while there is none. A leader may be reported here before it knows
   * itself that it leads. Survives lost connections and sessions; ends with the signal or the client.
   *
   * @example
   * for await (const leader of election.observe()) console.log(leader?.id ?? 'nobody', 'leads');
   */
  observe(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<Candidate | null> {
    return observeLeader(this.#client, this.#line, options.signal, asCandidate);
  }
}

/** The argument of `lead`. */
export interface Leadership {
  /** The result of `campaign`. */
  readonly holding: Holding;
  /** The znode of the candidate. */
  readonly path: string;
  /** Aborts when `lead` should end. */
  readonly signal: AbortSignal;
  /** Larger than that of every earlier leader. */
  readonly token: bigint;
  /** Whether we are certain to lead at this moment. */
  readonly isHeld: boolean;
  /** Writes that the service refuses once we no longer lead. */
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

/** Others may write data that is not text; the leader is reported nevertheless. */
const LENIENT = new TextDecoder('utf-8', { ignoreBOM: true });

const STYLES: readonly string[] = ['latch', 'selector'];
const LATCH_MARKER = 'latch-';
