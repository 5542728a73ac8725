/**
 * The command `meerkat`.
 *
 * @param args the words behind its name
 * @returns the code to exit with
 */
export async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  // The one command that is started often and awaited; parsing options would cost it a third of its start-up time.
  if (command === 'server' && rest.every((word) => !word.startsWith('-'))) {
    const { serve } = await import('./commands/server.ts');
    return serve(rest);
  }
  const { parseCommand } = await import('./program.ts');
  return parseCommand(args);
}
