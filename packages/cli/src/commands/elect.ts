import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, isZooKeeperError } from '@meerkat/client';
import type { Candidate, Election } from '@meerkat/recipes';
import { Option } from 'commander';
import { addHoldOptions, type HoldWords, handleMargin, parseHoldSettings } from '../child/hold-settings.ts';
import { type HeldEnd, runHeld } from '../child/run-held.ts';
import { hex } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { writeAll } from '../run/io.ts';

interface Options extends HoldWords {
  readonly style: 'latch' | 'selector';
  readonly again?: boolean;
}

/** A command that ends at once is not started more often than this. Milliseconds. */
const AGAIN_MS = 1000;

/** `elect`: a command that runs while we lead. */
export const elect: DefineCommand = (command, host) => {
  command
    .description(
      'Stand for election, run a command as the leader, and exit with its exit code. It gets SIGTERM, and then ' +
        'killed, when leadership is no longer certain (exit code 27). MEERKAT_ELECTION_PATH, _TOKEN, _ZNODE and _SESSION ' +
        'are in its environment.',
    )
    .usage('[options] <path> -- <command> [arguments]')
    .argument('<path>', 'the election')
    .argument('<command...>', 'what the leader runs, behind "--"')
    .option('--again', 'stand again when the command has ended or leadership was lost, until Ctrl-C or SIGTERM');
  addHoldOptions(command)
    .addOption(
      new Option('--style <recipe>', "with Curator's layout: which of its two elections")
        .choices(['latch', 'selector'])
        .default('latch'),
    )
    .addHelpText(
      'after',
      examples([
        ['meerkat elect /leader -- ./scheduler', 'runs on one machine, and on the next when that one fails'],
        ['meerkat elect --again /leader -- ./scheduler', 'comes back after each end'],
        ['meerkat elect --id "$(hostname)" /leader -- ./scheduler', 'who leads, as the others see it'],
      ]),
    )
    .action((path: string, words: string[], options: Options) =>
      host.run((context) => run(context, path, words, options)),
    );
};

async function run(context: Context, text: string, words: readonly string[], options: Options): Promise<number> {
  const path = context.resolve(text);
  const settings = parseHoldSettings(options);
  const client = await context.connect();
  const { Election } = await import('@meerkat/recipes');
  const { layout, id, killAfterMs, marginMs } = settings;
  const handleMarginMs = handleMargin(settings, client);
  const election = new Election(client, path, { id, layout, style: options.style, marginMs: handleMarginMs });
  const shown = `the leadership of ${path}`;
  for (;;) {
    const held = await campaign(context, election, client, settings.acquireMs);
    context.note(`${id} leads ${path}, with token ${held.token}`);
    const env = {
      MEERKAT_ELECTION_PATH: path,
      MEERKAT_ELECTION_TOKEN: String(held.token),
      MEERKAT_ELECTION_ZNODE: held.path,
      MEERKAT_ELECTION_SESSION: hex(held.sessionId),
    };
    const startMs = performance.now();
    const end = await runHeld(context, { client, held, words, env, killAfterMs, marginMs, shown });
    if (end.fault !== null) await writeAll(context.io.stderr, `meerkat: ${end.fault}\n`);
    // A program that is not there will not be there next time.
    if (options.again !== true || end.signal !== null || end.fault !== null) return exitCodeOf(end);
    context.note(`the command has ended with ${end.exitCode}; standing again`);
    const restMs = AGAIN_MS - (performance.now() - startMs);
    if (restMs > 0) await sleep(restMs, undefined, { signal: context.signal });
  }
}

function exitCodeOf({ exitCode, lossReason }: HeldEnd): number {
  if (lossReason === null) return exitCode;
  throw new CommandFailure(
    CommandExit.ownershipLost,
    `leadership was lost while the command ran, and the command was ended: ${lossReason}`,
  );
}

/** Waits until we lead, and says who does meanwhile. */
async function campaign(
  context: Context,
  election: Election,
  client: Client,
  acquireMs: number | undefined,
): Promise<Awaited<ReturnType<Election['campaign']>>> {
  const { signal } = context;
  using observing = new Observing(signal);
  void printLeaders(context, election, client, observing.signal);
  try {
    return await election.campaign({ signal, timeoutMs: acquireMs });
  } catch (error) {
    if (!isZooKeeperError(error) || error.code !== 'TIMEOUT') throw error;
    throw new CommandFailure(
      CommandExit.timedOut,
      `${election.path}: another candidate led for all of --acquire-timeout; the command was not run`,
    );
  }
}

/** Ends with its scope, or before when the run ends. */
class Observing implements Disposable {
  readonly #end = new AbortController();
  readonly signal: AbortSignal;

  constructor(outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.#end.signal]);
  }

  [Symbol.dispose](): void {
    this.#end.abort();
  }
}

async function printLeaders(context: Context, election: Election, client: Client, signal: AbortSignal): Promise<void> {
  try {
    for await (const leader of election.observe({ signal })) {
      // Our own leadership is reported by campaign().
      if (leader === null || leader.sessionId === client.session?.id) continue;
      context.note(`${nameOfLeader(leader)} leads ${election.path} since ${leader.since.toISOString()}; waiting`);
    }
  } catch {
    // What is wrong with the path is reported by campaign().
  }
}

function nameOfLeader({ id }: Candidate): string {
  return id === '' ? 'a leader without a name' : id;
}
