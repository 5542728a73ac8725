import {
  type AdminIdentity,
  askWord,
  type ConnectionLine,
  endSession,
  type FoundSession,
  lookAtSession,
  NoAnswerError,
  type NotEnded,
  parseConnections,
  parseHeld,
} from '@meerkat/console/monitoring';
import { adminTls, credentialsOf, withoutCredentials } from '../archive/source.ts';
import { ANSWER_MS } from '../commands/status.ts';
import type { Column } from '../output/column.ts';
import { count } from '../output/stat-columns.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { adminPorts, parsePorts } from './admin-ports.ts';

export interface EndWords {
  readonly httpPort?: string;
  readonly https?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

interface Row {
  readonly session: string;
  readonly server: string;
  readonly client: string | null;
  readonly ephemerals: number;
  readonly watches: number | null;
  readonly ended: boolean;
}

/** `sessions end`: ends a session of another client. */
export async function endOne(
  context: Context,
  id: string,
  { httpPort = '8080', https = false, dryRun = false, yes = false }: EndWords,
): Promise<CommandExit> {
  if (!/^0x[0-9a-f]{1,16}$/i.test(id)) {
    throw new InvocationFailure(`expected the id of a session as "meerkat sessions" shows it, 0x…, found "${id}"`);
  }
  const session = id.toLowerCase();
  const { signal, timeoutMs = ANSWER_MS } = context;
  const servers = await context.servers();
  const tls = https ? await adminTls(context) : null;
  const ports = adminPorts({
    servers,
    ports: parsePorts(httpPort),
    tls,
    // The server waits five seconds for a quorum.
    timeoutMs: Math.max(timeoutMs, CONFIRMED_MS),
    signal,
  });
  const credentials = await credentialsOf(context);
  const identity: AdminIdentity = {
    authorization: credentials ?? withoutCredentials(https ? 'https:' : 'http:', tls ?? {}),
    tls: null,
  };
  const found = await lookAtSession(servers, ports, identity, session);
  if ('message' in found) throw failureOf(session, found);
  const client = await clientOf(context, session);
  // A long answer, for people who decide.
  const watches = dryRun || !yes ? await watchesOf(context, session) : null;
  const row = { session, server: client?.server ?? found.server.name, client: client?.client ?? null, watches };
  if (dryRun) {
    await context.report.one(COLUMNS, { ...row, ephemerals: found.ephemerals, ended: false });
    if (found.paths.length > 0) context.note(`it holds ${someOf(found)}`);
    context.note('it would be ended; nothing was');
    return CommandExit.ok;
  }
  if (!yes && !(await confirm(context, questionOf(session, found, client, watches)))) {
    context.note('nothing was ended');
    return CommandExit.no;
  }
  const ended = await endSession(found, ports, identity, session);
  if ('message' in ended) throw failureOf(session, ended);
  await context.report.one(COLUMNS, { ...row, ephemerals: ended.ephemerals, ended: true });
  return CommandExit.ok;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'session', value: ({ session }) => session },
  { name: 'server', value: ({ server }) => server },
  { name: 'client', value: ({ client }) => client },
  { name: 'ephemerals', value: ({ ephemerals }) => ephemerals },
  { name: 'watches', value: ({ watches }) => watches },
  { name: 'ended', value: ({ ended }) => ended },
];

function questionOf(
  session: string,
  found: FoundSession,
  client: ConnectionLine | null,
  watches: number | null,
): string {
  const whose = client === null ? '' : ` of ${client.client} at ${client.server}`;
  const held = found.ephemerals === 0 ? 'no ephemeral znodes' : someOf(found);
  const watched = watches === null ? 'its watches' : `${count(watches)} watched paths`;
  return `end session ${session}${whose}, with ${held} and ${watched}?`;
}

function someOf({ ephemerals, paths }: FoundSession): string {
  const shown = paths.slice(0, PATHS_SHOWN).join(', ');
  const rest = ephemerals - Math.min(paths.length, PATHS_SHOWN);
  const znodes = `${count(ephemerals)} ephemeral ${ephemerals === 1 ? 'znode' : 'znodes'}`;
  return `${znodes} (${shown}${rest > 0 ? ` and ${count(rest)} more` : ''})`;
}

/** The client that has it, where servers report it. */
async function clientOf(context: Context, session: string): Promise<ConnectionLine | null> {
  const lines = await collect(context, 'cons', parseConnections);
  return lines?.find((line) => line.session === session) ?? null;
}

/** Paths that it watches at its server; null: not every server reports them. */
async function watchesOf(context: Context, session: string): Promise<number | null> {
  const held = await collect(context, 'wchc', parseHeld, true);
  return held?.filter((one) => one.session === session).length ?? null;
}

/** What the servers say to a word; one that says nothing is left out, or there is no answer. */
async function collect<T>(
  context: Context,
  word: string,
  parse: (server: string, text: string) => readonly T[],
  needsAll = false,
): Promise<readonly T[] | null> {
  const answers = (await context.servers()).map(async (server) => {
    try {
      return parse(server.name, await askWord(server, word, context.timeoutMs ?? ANSWER_MS, context.signal));
    } catch (error) {
      if (error instanceof NoAnswerError) return null;
      throw error;
    }
  });
  const answered = await Promise.all(answers);
  return needsAll && answered.includes(null) ? null : answered.flatMap((lines) => lines ?? []);
}

function failureOf(session: string, { kind, message }: NotEnded): CommandFailure {
  const attempt = kind === 'unconfirmed' ? '' : `session ${session} was not ended: `;
  return new CommandFailure(EXITS[kind], `${attempt}${message}${ADVICE[kind] ?? ''}`);
}

const EXITS: Readonly<Record<NotEnded['kind'], CommandExit>> = {
  unknown: CommandExit.no,
  refused: CommandExit.credentials,
  plain: CommandExit.credentials,
  'no-quorum': CommandExit.service,
  unsupported: CommandExit.unsupported,
  unreachable: CommandExit.unreachable,
  unconfirmed: CommandExit.outcomeUnknown,
};

const ADVICE: Readonly<Partial<Record<NotEnded['kind'], string>>> = {
  refused: '; give such credentials: --auth digest:user:password',
  unknown: '; "meerkat sessions" lists those that are connected',
};

const CONFIRMED_MS = 10_000;
const PATHS_SHOWN = 5;
