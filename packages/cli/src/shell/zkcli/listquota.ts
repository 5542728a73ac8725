import type { Column } from '../../output/column.ts';
import { formatLimits } from '../../quota/quota-text.ts';
import { type Quota, readQuota } from '../../quota/quotas.ts';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `listquota`: prints a quota as zkCli does; the exit code is 1 when there is none. */
export const listQuota: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .addHelpText('after', examples([['listquota /jobs', 'what is allowed, what is used; -1 is no limit']]))
    .action((text: string) =>
      host.run(async (context) => {
        const { report } = context;
        const path = context.resolve(text);
        const client = await context.connect();
        if (client.chroot !== '') throw new InvocationFailure('quotas are outside of the chroot: connect without it');
        const quota = await readQuota(client, path, context.call);
        if (!report.isForPeople) await report.one(columnsOf(path), quota);
        else {
          await report.line(`absolute path is /zookeeper/quota${path === '/' ? '' : path}/zookeeper_limits`);
          if (quota === null) await report.line(`quota for ${path} does not exist.`);
          else {
            await report.line(`Output quota for ${path} ${formatLimits(quota.limits)}`);
            const { usage } = quota;
            if (usage !== null) await report.line(`Output stat for ${path} count=${usage.count},bytes=${usage.bytes}`);
          }
        }
        return quota === null ? CommandExit.no : CommandExit.ok;
      }),
    );
};

function columnsOf(path: string): readonly Column<Quota | null>[] {
  return [
    { name: 'path', value: () => path },
    { name: 'countSoft', value: (quota) => quota?.limits.countSoft ?? null },
    { name: 'countHard', value: (quota) => quota?.limits.countHard ?? null },
    { name: 'bytesSoft', value: (quota) => quota?.limits.bytesSoft ?? null },
    { name: 'bytesHard', value: (quota) => quota?.limits.bytesHard ?? null },
    { name: 'count', value: (quota) => quota?.usage?.count ?? null },
    { name: 'bytes', value: (quota) => quota?.usage?.bytes ?? null },
  ];
}
