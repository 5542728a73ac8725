import { MEERKAT_VERSION, ZOOKEEPER_VERSION } from '@meerkat/server/version';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `version`: of this program, and of the ZooKeeper whose protocol it speaks. */
export const version: DefineShellCommand = (command, host) => {
  command.action(() =>
    host.run(async ({ report }) => {
      if (report.isForPeople) {
        await report.line(`ZooKeeper CLI version: ${ZOOKEEPER_VERSION}-meerkat-${MEERKAT_VERSION}`);
        return CommandExit.ok;
      }
      const columns = [
        { name: 'version', value: () => MEERKAT_VERSION },
        { name: 'zookeeper', value: () => ZOOKEEPER_VERSION },
      ];
      await report.one(columns, null);
      return CommandExit.ok;
    }),
  );
};
