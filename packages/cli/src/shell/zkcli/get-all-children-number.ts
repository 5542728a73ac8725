import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `getAllChildrenNumber`: counted by the server. */
export const getAllChildrenNumber: DefineShellCommand = (command, host) => {
  command.argument('<path>', 'the znode, which is not counted itself').action((text: string) =>
    host.run(async (context) => {
      const { report } = context;
      const path = context.resolve(text);
      const client = await context.connect();
      const found = await client.descendantCount(path, context.call);
      if (report.isForPeople) await report.line(String(found));
      else {
        const columns = [
          { name: 'path', value: () => path },
          { name: 'count', value: (count: number) => count },
        ];
        await report.one(columns, found);
      }
      return CommandExit.ok;
    }),
  );
};
