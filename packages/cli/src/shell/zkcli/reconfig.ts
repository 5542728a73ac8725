import { readFile } from 'node:fs/promises';
import type { ReconfigOptions } from '@meerkat/client';
import { parseConfig } from '@meerkat/console/membership';
import { STAT_COLUMNS } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { fileFailure, InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { describeConfig } from './config-report.ts';

interface Options {
  readonly stat?: boolean;
  readonly ifVersion?: string;
  readonly file?: string;
  readonly members?: string;
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
}

/** `reconfig`: needs servers with reconfigEnabled=true, and the right to write /zookeeper/config. */
export const reconfig: DefineShellCommand = (command, host) => {
  command
    .option('-s, --stat', 'print the Stat of the configuration, too')
    .option('-v, --if-version <hex>', 'only if this is the version of the configuration, as "config -c" prints it')
    .option('--file <file>', 'the whole new membership, server.N=… lines of a file (also -file)')
    .option('--members <list>', 'the whole new membership, server.N=… with commas (also -members)')
    .option('--add <list>', 'servers to add or change, with commas; repeatable (also -add)', collect)
    .option('--remove <ids>', 'ids of servers to remove, with commas; repeatable (also -remove)', collect)
    .addHelpText(
      'after',
      examples([
        ['reconfig -remove 3', 'server 3 leaves'],
        ['reconfig -add server.4=zk4:2888:3888;2181', 'server 4 comes'],
      ]),
    )
    .action((options: Options) =>
      host.run(async (context) => {
        const { report } = context;
        const change = { ...(await readChange(options)), fromVersion: parseVersion(options.ifVersion) };
        const client = await context.connect();
        const { data, stat } = await client.reconfig({ ...change, ...context.call });
        if (report.isForPeople) await report.line('Committed new configuration:');
        await describeConfig(report, parseConfig(new TextDecoder().decode(data)), false);
        if (options.stat === true && report.isForPeople) await report.one(STAT_COLUMNS, stat);
        return CommandExit.ok;
      }),
    );
};

async function readChange({ file, members, add, remove }: Options): Promise<ReconfigOptions> {
  const kinds = [file, members, add ?? remove].filter((kind) => kind !== undefined).length;
  if (kinds === 0) throw new InvocationFailure('expected --file, --members, or --add and --remove');
  if (kinds > 1) throw new InvocationFailure('--file, --members, and --add or --remove exclude each other');
  if (file !== undefined) return { members: await readMembers(file) };
  if (members !== undefined) return { members: splitList([members]) };
  return {
    ...(add === undefined ? {} : { joining: splitList(add) }),
    ...(remove === undefined ? {} : { leaving: splitList(remove).map(parseId) }),
  };
}

async function readMembers(file: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw fileFailure(`cannot read the members of --file ${file}`, error);
  }
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('server.'));
}

function splitList(lists: readonly string[]): readonly string[] {
  return lists.flatMap((list) => list.split(',')).filter((item) => item !== '');
}

function parseId(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvocationFailure(`--remove: expected the id of a server, found "${text}"`);
  return Number(text);
}

function parseVersion(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  const digits = text.replace(/^0x/, '');
  if (!/^[0-9a-f]{1,16}$/i.test(digits)) {
    throw new InvocationFailure(`--if-version: expected a version in hex, such as 100000003, found "${text}"`);
  }
  return BigInt(`0x${digits}`);
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}
