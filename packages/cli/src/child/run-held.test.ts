import type { Client } from '@meerkat/client';
import type { Held } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import type { Context } from '../run/context.ts';
import { type HeldEnd, runHeld } from './run-held.ts';

interface Run {
  readonly end: HeldEnd;
  readonly notes: readonly string[];
  readonly releases: number;
}

/** Runs a command that ends after a minute unless it is signalled. @param loss when what is held is lost */
async function run(loss: 'before it starts' | 'while it runs'): Promise<Run> {
  const lost = new AbortController();
  const notes: string[] = [];
  let releases = 0;
  const held = {
    signal: lost.signal,
    release: async () => {
      releases++;
    },
  } as unknown as Held;
  const client = {
    lostAtMs: performance.now() + 60_000,
    surroundings: { clock: { monotonicMs: () => performance.now() } },
  } as unknown as Client;
  const context = { signal: new AbortController().signal, note: (line: string) => void notes.push(line) } as Context;
  if (loss === 'before it starts') lost.abort(new Error('the session was lost'));
  const running = runHeld(context, {
    client,
    held,
    words: ['sleep', '60'],
    env: {},
    killAfterMs: 20_000,
    marginMs: 0,
    shown: 'the lock /it',
  });
  if (loss === 'while it runs') lost.abort(new Error('the session was lost'));
  return { end: await running, notes, releases };
}

test.each(['before it starts', 'while it runs'] as const)(
  'a command whose lock is lost %s is sent SIGTERM',
  async (loss) => {
    const { end, notes, releases } = await run(loss);
    expect(end).toMatchObject({ exitCode: 128 + 15, lossReason: 'the session was lost' });
    expect(notes).toEqual([
      expect.stringMatching(
        /^the lock \/it: the session was lost; the command is sent SIGTERM, and killed in 20000 ms$/,
      ),
    ]);
    expect(releases).toBe(1);
  },
);
