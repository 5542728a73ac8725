import { checkConfigurations } from '../doctor/configuration-checks.ts';
import type { Examination } from '../doctor/examination.ts';
import { FAULTS, type Finding, isNote } from '../doctor/faults.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Words {
  readonly config?: readonly string[];
  readonly log?: readonly string[];
  readonly clientLog?: readonly string[];
  readonly session?: string;
  readonly lock?: string;
  readonly httpPort?: string;
  readonly https?: boolean;
  readonly opensSessions: boolean;
  readonly asksServers: boolean;
}

/** `doctor`: why it does not work. */
export const doctor: DefineCommand = (command, host) => {
  command
    .option('--config <file...>', 'zoo.cfg of servers: read, compared, their disks and election ports looked at')
    .option('--log <file...>', 'logs of servers, ours or Apache’s')
    .option('--client-log <file...>', 'logs of the client whose session has ended')
    .option('--session <id>', 'why this session has expired; needs --log')
    .option('--lock <path>', 'why this lock does not come free')
    .option(
      '--http-port <ports>',
      'admin port or port for metrics, to compare clocks: one for all servers, or one each with commas',
    )
    .option('--https', 'these speak TLS: with the --tls options')
    .option('--no-sessions', 'open no sessions')
    .option('--no-servers', 'ask no servers: files and logs only')
    .addHelpText(
      'after',
      `\nEach server is looked up, connected to, greeted and asked srvr and mntr; a session is opened at it, and closed.
Exit code 0 when no fault is found, 1 when some are, 3 when no server could be connected to. Faults have names, which scripts can rely on.\n${examples(
        [
          ['meerkat doctor --server zk1,zk2,zk3', 'why clients cannot connect, why there is no quorum, what is slow'],
          ['meerkat doctor --config zoo.cfg --log zookeeper.log', 'on the machine of a server that does not join'],
          ['meerkat doctor --no-servers --log zk*.log --session 0x1000a', 'why a session expired'],
          ['meerkat doctor --lock /locks/job', 'why a lock waits'],
        ],
      )}`,
    )
    .action(
      ({
        sessions,
        servers,
        ...words
      }: Omit<Words, 'opensSessions' | 'asksServers'> & { sessions: boolean; servers: boolean }) =>
        host.run((context) => run(context, { ...words, opensSessions: sessions, asksServers: servers })),
    );
};

async function run(context: Context, words: Words): Promise<CommandExit> {
  const { findings, isAnyReached } = await examine(context, words);
  if (context.report.isForPeople) await print(context, findings);
  else {
    const list = await context.report.list(COLUMNS);
    for (const finding of findings) await list.add(finding);
    await list.end();
  }
  if (!isAnyReached) return CommandExit.unreachable;
  return findings.every(isNote) ? CommandExit.ok : CommandExit.no;
}

async function examine(context: Context, words: Words): Promise<Examination> {
  const { timeoutMs = ANSWER_MS, signal } = context;
  const sessionId = words.session === undefined ? null : parseSessionId(words.session);
  const findings: Finding[] = [];
  let isAnyReached = true;
  if (words.config !== undefined) findings.push(...(await checkConfigurations(words.config, timeoutMs, signal)));
  findings.push(...(await readLogs(words, sessionId)));
  if (words.asksServers) {
    const { examineServers } = await import('../doctor/examination.ts');
    const httpTls = words.https === true ? await (await import('../archive/source.ts')).adminTls(context) : null;
    const httpPorts = parsePorts(words.httpPort);
    const options = { settings: await context.settings(), httpPorts, httpTls, timeoutMs };
    const examined = await examineServers(
      await context.servers(),
      { ...options, opensSessions: words.opensSessions },
      signal,
    );
    findings.push(...examined.findings);
    isAnyReached = examined.isAnyReached;
  }
  if (words.lock !== undefined) {
    const { checkLock } = await import('../doctor/lock-check.ts');
    findings.push(...(await checkLock(context, words.lock)));
  }
  return { findings, isAnyReached };
}

async function readLogs({ log = [], clientLog = [] }: Words, sessionId: bigint | null): Promise<Finding[]> {
  if (sessionId !== null && log.length === 0)
    throw new InvocationFailure('--session needs the logs of the servers: --log');
  if (log.length === 0) return [];
  const [{ LogFindings }, { readLog }, { SessionHistory }] = await Promise.all([
    import('../doctor/log-rules.ts'),
    import('../doctor/log-lines.ts'),
    import('../doctor/session-history.ts'),
  ]);
  const findings: Finding[] = [];
  const history = sessionId === null ? null : new SessionHistory(sessionId);
  for (const file of log) {
    const found = new LogFindings(file);
    for await (const line of readLog(file)) {
      found.add(line);
      history?.addServerLine(line);
    }
    findings.push(...found.list());
  }
  if (history === null) return findings;
  for (const file of clientLog) for await (const line of readLog(file)) history.addClientLine(line);
  return [history.conclude(), ...findings];
}

function parseSessionId(text: string): bigint {
  if (/^0x[0-9a-f]{1,16}$/i.test(text)) return BigInt(text);
  throw new InvocationFailure(`--session: expected an id such as 0x1000a2b3c4d0001, found "${text}"`);
}

function parsePorts(text: string | undefined): number[] {
  return (text ?? '').split(',').flatMap((word) => {
    if (word === '') return [];
    const port = Number(word);
    if (Number.isInteger(port) && port > 0 && port < 65_536) return [port];
    throw new InvocationFailure(`--http-port: expected ports with commas between them, found "${text}"`);
  });
}

async function print({ report }: Context, findings: readonly Finding[]): Promise<void> {
  const { paint } = report;
  if (findings.length === 0) await report.line(paint.good('nothing wrong was found'));
  // What is broken comes before what is worth knowing.
  for (const finding of findings.toSorted((a, b) => Number(isNote(a)) - Number(isNote(b)))) {
    const { meaning, advice } = FAULTS[finding.fault];
    const name = isNote(finding) ? paint.notable(finding.fault) : paint.bad(finding.fault);
    await report.line(`${name}  ${finding.where}\n  ${meaning}\n  found: ${finding.found}\n  to do: ${advice}`);
  }
}

const COLUMNS: readonly Column<Finding>[] = [
  { name: 'fault', value: ({ fault }) => fault },
  { name: 'isNote', value: (finding) => isNote(finding) },
  { name: 'where', value: ({ where }) => where },
  { name: 'found', value: ({ found }) => found },
  { name: 'meaning', value: ({ fault }) => FAULTS[fault].meaning },
  { name: 'advice', value: ({ fault }) => FAULTS[fault].advice },
];
