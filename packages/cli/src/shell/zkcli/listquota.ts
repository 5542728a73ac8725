import type { Column } from '../../output/column.ts';
import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { limitsPathOf, parseLimits, type Quota, readQuota } from './quota-znodes.ts';

/** `listquota`: the exit code is 1 when the path has none. */
export const listQuota: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .addHelpText('after', examples([['listquota /jobs', 'what is allowed, what is used; -1 is no limit']]))
    .action((text: string) =>
      host.run(async (context) => {
        const { report } = context;
        const path = context.resolve(text);
        const client = await context.connect();
        const quota = await readQuota(context, client, path);
        if (!report.isForPeople) {
          await report.one(columnsOf(path), quota);
        } else {
          await report.line(`absolute path is ${limitsPathOf(path)}`);
          if (quota === null) await report.line(`quota for ${path} does not exist.`);
          else {
            await report.line(`Output quota for ${path} ${quota.limitsText}`);
            if (quota.usageText !== null) await report.line(`Output stat for ${path} ${quota.usageText}`);
          }
        }
        return quota === null ? CommandExit.no : CommandExit.ok;
      }),
    );
};

function columnsOf(path: string): readonly Column<Quota | null>[] {
  const usage = (quota: Quota | null, field: 'count' | 'bytes'): number | null =>
    quota?.usageText == null ? null : parseLimits(quota.usageText)[field];
  return [
    { name: 'path', value: () => path },
    { name: 'countLimit', value: (quota) => quota?.limits.count ?? null },
    { name: 'bytesLimit', value: (quota) => quota?.limits.bytes ?? null },
    { name: 'countHardLimit', value: (quota) => quota?.limits.countHard ?? null },
    { name: 'bytesHardLimit', value: (quota) => quota?.limits.bytesHard ?? null },
    { name: 'count', value: (quota) => usage(quota, 'count') },
    { name: 'bytes', value: (quota) => usage(quota, 'bytes') },
  ];
}
