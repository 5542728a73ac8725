import type { Client } from '@meerkat/client';
import type { Held } from '@meerkat/recipes';
import type { Context } from '../run/context.ts';
import { ChildCommand, type ChildEnd } from './child-command.ts';
import { takeSignals } from './signals.ts';

/** Timeout of the release, in milliseconds. */
const RELEASE_MS = 5000;

/** The command to run, and what is held while it runs. */
export interface HeldRun {
  readonly client: Client;
  readonly held: Held;
  readonly words: readonly string[];
  /** Added to the environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** Between SIGTERM and SIGKILL, when ownership is no longer certain. Milliseconds. */
  readonly killAfterMs: number;
  /** How long before the client's deadline the child must be dead, in milliseconds. */
  readonly marginMs: number;
  /** For messages: `the lock /locks/x`. */
  readonly shown: string;
}

export interface HeldEnd extends ChildEnd {
  /** Why ownership became uncertain while the child ran; null if it never did. */
  readonly lossReason: string | null;
  /** The first signal that was passed on. */
  readonly signal: NodeJS.Signals | null;
}

/**
 * Runs a command while something is held, and releases it once the command has ended.
 *
 * Signals are passed to the command. When ownership is no longer certain, the command gets SIGTERM, and SIGKILL after
 * `killAfterMs` or at the deadline less `marginMs`, whichever comes first. The creator of `held` gives it a margin of
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
    // The terminal has sent it to the child already.
    if (child?.isOnTerminal === true && (name === 'SIGINT' || name === 'SIGQUIT')) return;
    child?.signal(name);
  });
  const onLost = (): void => {
    const reason: unknown = held.signal.reason;
    lossReason = reason instanceof Error ? reason.message : String(reason);
    const delayMs = Math.max(0, Math.min(killAfterMs, leftMs(run)));
    context.note(`${run.shown}: ${lossReason}; the command is sent SIGTERM, and killed in ${Math.round(delayMs)} ms`);
    child?.signal('SIGTERM');
    killTimer = setTimeout(() => child?.signal('SIGKILL'), delayMs);
  };
  try {
    // Interrupted while acquiring: the command must not start.
    if (context.signal.aborted) throw new DOMException('interrupted before the command began', 'AbortError');
    child = new ChildCommand(words, env, killAfterMs);
    if (held.signal.aborted) onLost();
    else held.signal.addEventListener('abort', onLost, { once: true });
    const end = await child.ended;
    // Processes that the command has started may have outlived it.
    if (lossReason !== null) child.signal('SIGKILL');
    return { ...end, lossReason, signal };
  } finally {
    if (killTimer !== null) clearTimeout(killTimer);
    held.signal.removeEventListener('abort', onLost);
    // Failures are ignored: the end of the session releases it too.
    await held.release({ timeoutMs: RELEASE_MS }).catch(() => {});
  }
}

/** How long no other client can acquire it, less the margin; negative when one may have done so. Milliseconds. */
function leftMs({ client, marginMs }: HeldRun): number {
  return client.lostAtMs - marginMs - client.surroundings.clock.monotonicMs();
}
