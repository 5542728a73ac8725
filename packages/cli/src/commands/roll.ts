import { parseDuration } from '../connection/duration.ts';
import type { Column } from '../output/column.ts';
import { PauseProbe } from '../rolling/pause-probe.ts';
import { type RolledServer, roll as rollServers } from '../rolling/roll.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Words {
  readonly command?: string;
  readonly within: string;
  readonly probe?: string;
}

/** `roll`: a command for one server after the other, without a pause of the service. */
export const roll: DefineCommand = (command, host) => {
  command
    .option('--command <text>', 'for a shell, once for each server: {host}, {port} and {server} stand for it')
    .option('--within <duration>', 'how long the command may take, and the server to be back', '5m')
    .option('--probe <path>', 'measure the pause with writes to an ephemeral znode there; otherwise with sync')
    .addHelpText(
      'after',
      `\nObservers and followers come first, the leader last. The next server has its turn when the one before serves again
and is in step with the others; when it does not come back, nothing more is done and the exit code is 1.\n${examples([
        ["meerkat roll --profile prod --command 'ssh {host} sudo systemctl restart meerkat'", 'a rolling restart'],
        [
          "meerkat roll --profile prod --probe /probe --command './upgrade.sh {host}'",
          'and the pause that writers see',
        ],
      ])}`,
    )
    .action((words: Words) => host.run((context) => run(context, words)));
};

async function run(context: Context, { command, within, probe: path }: Words): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS, signal } = context;
  if (command === undefined) {
    throw new InvocationFailure(
      "--command is missing: what to run for each server, such as 'ssh {host} sudo systemctl restart meerkat'",
    );
  }
  const options = { command, withinMs: parseDuration(within, '--within'), timeoutMs };
  const servers = await context.servers();
  const client = await context.connect();
  const sessionId = client.session?.id;
  const probe = await PauseProbe.start(client, path === undefined ? null : context.resolve(path));
  try {
    const list = await report.list(COLUMNS);
    for await (const rolled of rollServers(servers, probe, options, signal)) await list.add(rolled);
    await list.end();
    if (client.session?.id !== sessionId) {
      context.note('the session of this command was lost on the way, and so may have been those of clients');
      return CommandExit.no;
    }
    return CommandExit.ok;
  } finally {
    await probe.stop();
  }
}

const COLUMNS: readonly Column<RolledServer>[] = [
  { name: 'server', value: ({ server }) => server },
  { name: 'role', value: ({ role }) => role },
  { name: 'versionBefore', value: ({ versionBefore }) => versionBefore },
  { name: 'version', value: ({ version }) => version },
  { name: 'tookMs', value: ({ tookMs }) => tookMs, align: 'right' },
  { name: 'pauseMs', value: ({ pauseMs }) => pauseMs, align: 'right' },
  { name: 'requests', value: ({ requests }) => requests, align: 'right' },
  { name: 'failures', value: ({ failures }) => failures, align: 'right' },
];
