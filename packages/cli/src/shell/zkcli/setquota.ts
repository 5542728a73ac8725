import { runQuota } from '../../commands/quota.ts';
import { examples } from '../../run/command.ts';
import type { DefineShellCommand } from '../shell-command.ts';

interface Options {
  readonly count?: string;
  readonly bytes?: string;
  readonly hardCount?: string;
  readonly hardBytes?: string;
}

/** `setquota`: "quota set", with zkCli's order of words. */
export const setQuota: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-n, --count <znodes>', 'soft limit of znodes, the one at the top included')
    .option('-b, --bytes <bytes>', 'soft limit of the bytes of data: 5000, 64K, 10M')
    .option('-N, --hard-count <znodes>', 'hard limit of znodes')
    .option('-B, --hard-bytes <bytes>', 'hard limit of bytes')
    .addHelpText(
      'after',
      examples([
        ['setquota -n 1000 /jobs', 'a warning in the log of the servers beyond 1000 znodes'],
        ['setquota -B 1M /jobs', 'no more than a mebibyte, where servers have enforceQuota=true'],
      ]),
    )
    .action((path: string, options: Options) => host.run((context) => runQuota(context, ['set', path], options)));
};
