import { Argument } from 'commander';
import { SCRIPTS, SHELLS, type ShellName } from '../completion/scripts.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandExit } from '../run/exit-code.ts';

/** `completion`: the script that teaches a shell to complete `meerkat`. */
export const completion: DefineCommand = (command, host) => {
  command
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      examples([
        ['eval "$(meerkat completion bash)"', 'in ~/.bashrc'],
        ['eval "$(meerkat completion zsh)"', 'in ~/.zshrc, behind compinit'],
        ['meerkat completion fish | source', 'in ~/.config/fish/config.fish'],
      ]),
    )
    .action((shell: ShellName) =>
      host.run(async ({ report }) => {
        await report.write(SCRIPTS[shell]);
        return CommandExit.ok;
      }),
    );
};
