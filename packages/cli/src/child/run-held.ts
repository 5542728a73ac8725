import type { Client } from '@meerkat/client';
import type { Held } from '@meerkat/recipes';
import type { Context } from '../run/context.ts';
import { ChildCommand, type ChildEnd } from './child-command.ts';
import { takeSignals } from './signals.ts';

/** How long the service may take to hear that something is given back. Milliseconds. */
const RELEASE_MS = 5000;

/** What runs, and what is held meanwhile. */
export interface HeldRun {
  readonly client: Client;
  readonly held: Held;
  readonly words: readonly string[];
  /** What the child finds in its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Between SIGTERM and SIGKILL, when ownership is no longer certain. Milliseconds. */
  readonly killAfterMs: number;
  /** So much before the client's deadline the child is dead. Milliseconds. */
  readonly marginMs: number;
  /** What is held, to people: `the lock /locks/x`. */
  readonly shown: string;
}

export interface HeldEnd extends ChildEnd {
  /** Why it was not ours for certain any more while the child ran; null when it was to the end. */
  readonly lossReason: string | null;
  /** The first signal that was passed on. */
  readonly signal: NodeJS.Signals | null;
}

/**
 * Runs a command as long as something is held, and gives it back once the command has ended.
 *
 * Signals go to the command. When what is held is not certain any more, the command gets SIGTERM, and killed
 * `killAfterMs` later or at the deadline less `marginMs`, whatever comes first; the creator of `held` gives it a margin of
 * the sum of both, so that there is time for this.
 */
export async function runHeld(context: Context, run: HeldRun): Promise<HeldEnd> {
  const { held, words, env, killAfterMs } = run;
  let signal: NodeJS.Signals | null = null;
  let child: ChildCommand | null = null;
  let lossReason: string | null = null;
  let killTimer: NodeJS.Timeout | null = null;
  using _ = takeSignals((name) => {
    signal ??= name;
    // From a terminal the child has had it already.
    if (child?.isOnTerminal === true && (name === 'SIGINT' || name === 'SIGQUIT')) return;
    child?.signal(name);
  });
  const onLost = (): void => {
    const reason: unknown = held.signal.reason;
    lossReason = reason instanceof Error ? reason.message : String(reason);
    const delayMs = Math.max(0, Math.min(killAfterMs, leftMs(run)));
    context.note(`${run.shown}: ${lossReason}; the command is told to end, and killed in ${Math.round(delayMs)} ms`);
    child?.signal('SIGTERM');
    killTimer = setTimeout(() => child?.signal('SIGKILL'), delayMs);
  };
  try {
    // Who was told to stop just now begins nothing any more.
    if (context.signal.aborted) throw new DOMException('interrupted before the command began', 'AbortError');
    child = new ChildCommand(words, env, killAfterMs);
    if (held.signal.aborted) onLost();
    else held.signal.addEventListener('abort', onLost, { once: true });
    const end = await child.ended;
    // What the command has started may have outlived it.
    if (lossReason !== null) child.signal('SIGKILL');
    return { ...end, lossReason, signal };
  } finally {
    if (killTimer !== null) clearTimeout(killTimer);
    held.signal.removeEventListener('abort', onLost);
    // Confirmed or not, the end of the session gives it back too.
    await held.release({ timeoutMs: RELEASE_MS }).catch(() => {});
  }
}

/** How long no other client can have it, less the margin; below 0 when one may by now. */
function leftMs({ client, marginMs }: HeldRun): number {
  return client.lostAtMs - marginMs - client.surroundings.clock.monotonicMs();
}
