import { askWord, NoAnswerError } from '@meerkat/console/monitoring';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Answered {
  readonly server: string;
  readonly text: string | null;
  readonly problem: string | null;
}

/** `4lw`: one of ZooKeeper's four-letter words, to each server. */
export const fourLetter: DefineCommand = (command, host) => {
  command
    .argument('<word>', 'srvr, stat, mntr, cons, dump, wchs …; servers answer what 4lw.commands.whitelist allows')
    .addHelpText(
      'after',
      examples([
        ['meerkat 4lw mntr', 'the metrics of the server at 127.0.0.1:2181'],
        ['meerkat 4lw srvr --server zk1,zk2,zk3', 'of three servers, one after the other'],
      ]),
    )
    .action((word: string) => host.run((context) => run(context, word)));
};

async function run(context: Context, word: string): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS } = context;
  if (!/^[a-z]{4}$/.test(word))
    throw new InvocationFailure(`expected a word of four letters such as srvr, and found "${word}"`);
  const servers = await context.servers();
  const answers = await Promise.all(
    servers.map(async (server): Promise<Answered> => {
      try {
        return { server: server.name, text: await askWord(server, word, timeoutMs, context.signal), problem: null };
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error;
        return { server: server.name, text: null, problem: error.message };
      }
    }),
  );
  if (report.isForPeople) {
    for (const { server, text, problem } of answers) {
      if (servers.length > 1) await report.line(report.paint.bold(`${server}:`));
      if (problem !== null) context.note(`meerkat: ${problem}`);
      else await report.write(text?.endsWith('\n') === true ? text : `${text}\n`);
    }
  } else {
    const list = await report.list(COLUMNS);
    for (const answer of answers) await list.add(answer);
    await list.end();
  }
  if (answers.every(({ problem }) => problem !== null)) return CommandExit.unreachable;
  return answers.every(({ problem }) => problem === null) ? CommandExit.ok : CommandExit.no;
}

const COLUMNS: readonly Column<Answered>[] = [
  { name: 'server', value: ({ server }) => server },
  { name: 'text', value: ({ text }) => text },
  { name: 'problem', value: ({ problem }) => problem },
];
