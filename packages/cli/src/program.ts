import { CommanderError } from 'commander';
import { CATALOG } from './catalog.ts';
import { addServerCommands } from './commands/servers.ts';
import { addHelpCommand } from './help/topics.ts';
import { makeProgram, prepare } from './program-options.ts';
import { CommandExit } from './run/exit-code.ts';
import { flush, type Io, PROCESS_IO } from './run/io.ts';
import { ProcessHost } from './run/process-host.ts';

/** Everything but the plain form of `meerkat server`. @returns the code to exit with */
export async function parseCommand(args: readonly string[], io: Io = PROCESS_IO): Promise<number> {
  const program = makeProgram(CATALOG);
  const host = new ProcessHost(io, program, CATALOG);
  for (const entry of CATALOG) {
    const command = prepare(program.command(entry.name, { hidden: entry.isHidden === true }), entry);
    // Loading one too many, because a value has its name, costs some milliseconds.
    if (args.includes(entry.name)) (await entry.load())(command, host);
  }
  let serverExitCode: number | null = null;
  addServerCommands(program, (exitCode) => {
    serverExitCode = exitCode;
  });
  addHelpCommand(program);
  let isPipeClosed = false;
  // Help may be read by a pager that is left. The host of a command listens as well, and knows what it means there.
  const onOutputError = ({ code }: NodeJS.ErrnoException): void => {
    if (code === 'EPIPE') isPipeClosed = true;
  };
  for (const stream of [io.stdout, io.stderr]) stream.on('error', onOutputError);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end the parsing too, with 0.
    host.exitCode = error.exitCode === 0 ? CommandExit.ok : CommandExit.invocation;
  }
  if (serverExitCode !== null) return serverExitCode;
  if (!ENDED_EARLY.includes(host.exitCode)) await flushBoth(io);
  // The error of the last write is reported in a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  for (const stream of [io.stdout, io.stderr]) stream.off('error', onOutputError);
  return isPipeClosed && host.exitCode === CommandExit.ok ? CommandExit.pipeClosed : host.exitCode;
}

/** A slow reader is not waited for then. */
const ENDED_EARLY: readonly number[] = [CommandExit.interrupted, CommandExit.terminated, CommandExit.pipeClosed];

/** The process ends behind this, and takes with it what a pipe has not taken. */
async function flushBoth({ stdout, stderr }: Io): Promise<void> {
  await flush(stdout);
  await flush(stderr);
}
