import { hostname } from 'node:os';
import type { Client } from '@meerkat/client';
import type { Layout } from '@meerkat/recipes';
import { type Command, Option } from 'commander';
import { parseDuration } from '../connection/duration.ts';
import { InvocationFailure } from '../run/command-failure.ts';

/** The options of `lock` and `elect` as the command line has them. */
export interface HoldWords {
  readonly layout: Layout;
  readonly id?: string;
  readonly acquireTimeout?: string;
  readonly killAfter: string;
  readonly margin: string;
}

export interface HoldSettings {
  readonly layout: Layout;
  readonly id: string;
  /** undefined: no limit. */
  readonly acquireMs: number | undefined;
  readonly killAfterMs: number;
  /** How long before the client's deadline the command must be dead. */
  readonly marginMs: number;
}

export function addHoldOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--layout <library>', 'whose znodes: shared with programs that use this library')
        .choices(['curator', 'kazoo'])
        .default('curator'),
    )
    .option('--id <text>', 'identifies this holder to others (default host and process)')
    .option('--acquire-timeout <time>', 'stop waiting after 500ms, 10s, 2m (default: never)')
    .option(
      '--kill-after <time>',
      'what the command has between SIGTERM and SIGKILL, when ownership is no longer certain',
      '2s',
    )
    .option('--margin <time>', 'how much earlier still, for followers that are cut off', '0');
}

export function parseHoldSettings(words: HoldWords): HoldSettings {
  return {
    layout: words.layout,
    id: words.id ?? `${hostname()}:${process.pid}`,
    acquireMs:
      words.acquireTimeout === undefined ? undefined : parseDuration(words.acquireTimeout, '--acquire-timeout'),
    killAfterMs: parseDuration(words.killAfter, '--kill-after'),
    marginMs: words.margin === '0' ? 0 : parseDuration(words.margin, '--margin'),
  };
}

/**
 * The margin of the handle: how long before the deadline the command is notified. Pings are a third of the session
 * timeout apart, so a margin of two thirds would report the loss of a healthy session; at most half is allowed.
 *
 * @returns milliseconds
 */
export function handleMargin({ killAfterMs, marginMs }: HoldSettings, client: Client): number {
  const sumMs = killAfterMs + marginMs;
  const timeoutMs = client.session?.timeoutMs ?? 0;
  if (sumMs * 2 <= timeoutMs) return sumMs;
  throw new InvocationFailure(
    `--kill-after and --margin, ${sumMs} ms together, leave too little of the session timeout of ${timeoutMs} ms: ` +
      `it has to be twice as long at least; ask for a longer one with --session-timeout`,
  );
}
