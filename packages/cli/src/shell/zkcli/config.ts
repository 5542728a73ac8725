import { parseConfig } from '@meerkat/console/membership';
import { STAT_COLUMNS } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { describeConfig } from './config-report.ts';

interface Options {
  readonly clients?: boolean;
  readonly stat?: boolean;
  readonly watch?: boolean;
}

/** `config`: the membership of the ensemble, as its znode holds it. */
export const config: DefineShellCommand = (command, host) => {
  command
    .option('-c, --clients', 'only the version and what clients connect to')
    .option('-w, --watch', 'report when it changes, once')
    .option('-s, --stat', 'print the Stat of its znode, too')
    .addHelpText('after', examples([['config -c', 'the version in hex, and host:port,host:port']]))
    .action((options: Options) =>
      host.run(async (context) => {
        const { report } = context;
        const client = await context.connect();
        const znode = await client.config(context.call);
        if (options.watch === true) {
          // The configuration is read without the chroot, a watch would be set below it.
          if (client.chroot !== '') throw new InvocationFailure('-w: the configuration lies outside of the chroot');
          const { changed } = await client.get('/zookeeper/config', { ...context.call, watch: true });
          context.leaveWatch(changed);
        }
        const found = parseConfig(new TextDecoder().decode(znode.data));
        await describeConfig(report, found, options.clients === true);
        if (options.stat === true && report.isForPeople) await report.one(STAT_COLUMNS, znode.stat);
        return CommandExit.ok;
      }),
    );
};
