import { runQuota } from '../../commands/quota.ts';
import { examples } from '../../run/command.ts';
import type { DefineShellCommand } from '../shell-command.ts';

interface Options {
  readonly count?: true;
  readonly bytes?: true;
  readonly hardCount?: true;
  readonly hardBytes?: true;
}

/** `delquota`: "quota remove", with zkCli's order of words. */
export const delQuota: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-n, --count', 'only the soft limit of znodes')
    .option('-b, --bytes', 'only the soft limit of bytes')
    .option('-N, --hard-count', 'only the hard limit of znodes')
    .option('-B, --hard-bytes', 'only the hard limit of bytes')
    .addHelpText('after', examples([['delquota /jobs', 'all limits of /jobs']]))
    .action((path: string, options: Options) => host.run((context) => runQuota(context, ['remove', path], options)));
};
