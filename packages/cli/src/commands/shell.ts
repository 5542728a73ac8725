import { type CatalogEntry, type DefineCommand, examples } from '../run/command.ts';
import type { CommonWords } from '../run/common-words.ts';
import type { Context } from '../run/context.ts';

interface Options extends CommonWords {
  readonly command?: string;
  readonly exitOnError?: boolean;
}

/** `shell`: the commands as lines of one session. */
export const shell: DefineCommand = (command, host) => {
  command
    .option('-c, --command <lines>', 'run these lines, with ";" or line feeds between them, and end')
    .option('-e, --exit-on-error', 'without a terminal: end at the first line that fails')
    .addHelpText(
      'after',
      examples([
        ['meerkat shell', 'lines typed at a terminal; "help" lists the commands'],
        ["meerkat shell -c 'cd /app; ls; get config'", 'some lines in one session'],
        ['meerkat shell -e < migration.zk', 'a script; exit code 0 when every line was'],
      ]),
    )
    .action(() => {
      const options = command.optsWithGlobals<Options>();
      const isInteractive = options.command === undefined && process.stdin.isTTY && process.stdout.isTTY;
      return host.run((context) => run(context, options, host.catalog, isInteractive), { takesSigint: isInteractive });
    });
};

async function run(
  context: Context,
  options: Options,
  catalog: readonly CatalogEntry[],
  isInteractive: boolean,
): Promise<number> {
  const { io, signal } = context;
  const { command, exitOnError = false, ...words } = options;
  if (isInteractive) {
    const { runInteractive } = await import('../shell/interactive.ts');
    return runInteractive(io, process.stdin, words, catalog, signal);
  }
  const [{ Shell }, { runInput, runText }, { Readable }] = await Promise.all([
    import('../shell/shell.ts'),
    import('../shell/script.ts'),
    import('node:stream'),
  ]);
  // Lines from standard input leave nothing of it for a command to read.
  await using shell = new Shell(
    command === undefined ? { stdin: Readable.from([]), stdout: io.stdout, stderr: io.stderr, env: io.env } : io,
    words,
    catalog,
  );
  const scriptOptions = { exitOnError, signal };
  return await (command === undefined
    ? runInput(shell, io.stdin, scriptOptions)
    : runText(shell, command, scriptOptions));
}
