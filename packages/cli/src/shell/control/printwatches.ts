import { Argument } from 'commander';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `printwatches`: whether events are printed. Without an argument, shows the setting. */
export const printWatches: DefineShellCommand = (command, host) => {
  command
    .addArgument(new Argument('[switch]', 'without it, show the setting').choices(['on', 'off']))
    .action((state: 'on' | 'off' | undefined) =>
      host.run(async ({ report }) => {
        const { watches } = host.shell;
        if (state === undefined) await report.line(`printwatches is ${watches.isPrinting ? 'on' : 'off'}`);
        else watches.isPrinting = state === 'on';
        return CommandExit.ok;
      }),
    );
};
