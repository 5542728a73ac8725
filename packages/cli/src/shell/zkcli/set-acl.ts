import type { Stat } from '@meerkat/client';
import { NoNodeError } from '@meerkat/client';
import { count, STAT_COLUMNS } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import { walkTree } from '../../tree/tree-walk.ts';
import { ACL_SYNTAX, parseAclText } from '../../value/acl-text.ts';
import { parseVersion } from '../../value/expected-version.ts';
import type { DefineShellCommand } from '../shell-command.ts';

interface Options {
  readonly stat?: boolean;
  readonly ifVersion?: string;
  readonly recursive?: boolean;
}

/** Changes in flight at once. */
const IN_FLIGHT_MAX = 64;

/** `setAcl`: of one znode, or of all below it as well. */
export const setAcl: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .argument('<acl>', ACL_SYNTAX)
    .option('-s, --stat', 'print the Stat it has now')
    .option('-v, --if-version <n>', 'only if its ACL has this version (aversion)')
    .option('-R, --recursive', 'everything below it as well')
    .addHelpText(
      'after',
      examples([
        ['setAcl /app world:anyone:r,auth::cdrwa', 'all may read, this session may do all'],
        ['setAcl -R /app open', 'all permissions for anyone'],
      ]),
    )
    .action((text: string, aclText: string, options: Options) =>
      host.run(async (context) => {
        const { report, call } = context;
        const path = context.resolve(text);
        const acl = parseAclText(aclText);
        const version = parseVersion(options.ifVersion);
        if (options.recursive === true && version !== undefined) {
          throw new InvocationFailure('-v is for one znode: those below it have versions of their own');
        }
        const client = await context.connect();
        if (options.recursive !== true) {
          const stat = await client.setAcl(path, acl, { ...call, version });
          if (options.stat === true) await report.one(STAT_COLUMNS, stat);
          return CommandExit.ok;
        }
        using progress = context.progress();
        const inFlight: Promise<Stat | null>[] = [];
        let changed = 0;
        for await (const visited of walkTree(client, path, call)) {
          inFlight.push(
            client.setAcl(visited.path, acl, call).catch((error: unknown) => {
              // It was deleted since it was listed.
              if (error instanceof NoNodeError) return null;
              throw error;
            }),
          );
          if (inFlight.length < IN_FLIGHT_MAX) continue;
          changed += (await Promise.all(inFlight.splice(0))).length;
          progress.update(() => `${count(changed)} ACLs set`);
        }
        changed += (await Promise.all(inFlight)).length;
        progress.clear();
        context.note(`${count(changed)} ACLs set`);
        return CommandExit.ok;
      }),
    );
};
