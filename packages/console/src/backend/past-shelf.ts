import type { PastSpan } from '../api/past-messages.ts';
import type { PastTree, PastTrees } from './options.ts';
import { Refusal } from './refusal.ts';

interface Kept {
  readonly moment: string;
  readonly tree: Promise<PastTree | null>;
  users: number;
  usedMs: number;
}

/**
 * Open past trees: at most two, as each needs the memory of a whole tree. One that has not been used for a minute is
 * closed. Shared by all browsers.
 */
export class PastShelf {
  readonly #past: PastTrees;
  /** Least recently used first. */
  #kept: Kept[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(past: PastTrees) {
    this.#past = past;
    this.#timer = setInterval(() => this.#sweep(Date.now()), SWEEP_MS).unref();
  }

  span(): Promise<PastSpan> {
    return this.#past.span();
  }

  /** Runs a function with the tree of a moment. @throws Refusal when there is no such moment, or too many are in use */
  async use<T>(moment: string, work: (tree: PastTree) => Promise<T>): Promise<T> {
    const kept = this.#take(moment);
    kept.users++;
    try {
      const tree = await kept.tree;
      if (tree === null) {
        throw new Refusal(400, 'bad-moment', `"${moment.slice(0, 100)}" is neither a zxid (0x100000004d) nor a time`);
      }
      if (tree.client.state === 'closed') {
        this.#drop(kept);
        throw new Refusal(503, 'past-lost', 'what was read of that moment is lost: try again');
      }
      return await work(tree);
    } finally {
      kept.users--;
      kept.usedMs = Date.now();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#kept.splice(0).map(closeKept));
  }

  #take(moment: string): Kept {
    const found = this.#kept.find((one) => one.moment === moment);
    if (found !== undefined) {
      this.#kept = [...this.#kept.filter((one) => one !== found), found];
      return found;
    }
    if (this.#kept.length >= TREES_MAX) {
      const idle = this.#kept.find(({ users }) => users === 0);
      if (idle === undefined) {
        throw new Refusal(429, 'too-many', `${TREES_MAX} moments are being looked at: try again in a moment`);
      }
      this.#drop(idle);
    }
    const kept: Kept = { moment, tree: this.#past.open(moment), users: 0, usedMs: Date.now() };
    this.#kept.push(kept);
    kept.tree.then(
      (tree) => tree === null && this.#drop(kept),
      () => this.#drop(kept),
    );
    return kept;
  }

  #drop(kept: Kept): void {
    this.#kept = this.#kept.filter((one) => one !== kept);
    void closeKept(kept);
  }

  #sweep(nowMs: number): void {
    for (const kept of this.#kept) if (kept.users === 0 && nowMs - kept.usedMs > IDLE_MS) this.#drop(kept);
  }
}

async function closeKept({ tree }: Kept): Promise<void> {
  await tree.then(
    (open) => open?.close(),
    () => {},
  );
}

const TREES_MAX = 2;
const IDLE_MS = 60_000;
const SWEEP_MS = 10_000;
