import { ConsoleProcess } from '../harness/console-process.ts';
import type { ShellCommand } from './script.ts';

const ZKCLI = '/usr/share/zookeeper/bin/zkCli.sh';
const EVENT = /^WatchedEvent (?!.*type:None).*$/m;

/** Output of one command, without variable parts; watch events separately, because another thread prints them. */
export interface Answer {
  readonly command: string;
  readonly lines: readonly string[];
  readonly events: readonly string[];
}

/**
 * Types the commands into zkCli.sh, one at a time, and records the output.
 *
 * The shell has no prompt when its input is not a terminal. So every command is followed by one for a missing znode:
 * when its error appears, the answer is complete.
 */
export async function shellTranscript(port: number, commands: readonly ShellCommand[]): Promise<Answer[]> {
  await using shell = new ConsoleProcess(ZKCLI, ['-server', `127.0.0.1:${port}`]);
  await shell.waitFor(/state:SyncConnected.*\n/);
  const answers: Answer[] = [];
  for (const [i, { line, events = 0 }] of commands.entries()) {
    shell.send(line);
    let text = '';
    for (let left = events; left > 0; left--) text += await shell.waitFor(EVENT);
    const marker = `/end-of-answer-${i}`;
    shell.send(`get ${marker}`);
    text += await shell.waitFor(new RegExp(`Node does not exist: ${marker}\n`));
    answers.push(answerOf(line, text.replace(`Node does not exist: ${marker}\n`, '')));
  }
  shell.send('quit');
  const code = await shell.end();
  answers.push({ command: 'quit', lines: [`exit code ${code}`], events: [] });
  return answers;
}

function answerOf(command: string, text: string): Answer {
  const lines = text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && line !== 'WATCHER::');
  const events = lines.filter((line) => line.startsWith('WatchedEvent'));
  const rest = lines.filter((line) => !line.startsWith('WatchedEvent')).map(withoutTimes);
  return { command, lines: isUnordered(command) ? rest.flatMap(sortedList).sort() : rest, events };
}

/** Whether the server returns the command's result in no particular order. */
function isUnordered(command: string): boolean {
  return command.startsWith('getEphemerals') || command === 'whoami';
}

/** The items of a line like `[b, a]`. */
function sortedList(line: string): string[] {
  return line.startsWith('[') ? line.slice(1, -1).split(', ') : [line];
}

/** Removes times and session ids; zxids are kept, because both servers get the same requests. */
function withoutTimes(line: string): string {
  return line.replace(/^([cm]time = ).*$/, '$1<time>').replace(/^(ephemeralOwner = )0x[0-9a-f]{5,}$/, '$1<session>');
}
