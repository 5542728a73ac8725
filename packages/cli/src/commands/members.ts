import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@meerkat/client';
import {
  type ConfiguredMember,
  changeMember,
  type EnsembleConfig,
  isVoter,
  makePlan,
  type PlannedChange,
  parseConfig,
  type Step,
  survives,
  weightLine,
} from '@meerkat/console/membership';
import { askMembers } from '../membership/ask.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

export interface MembersOptions {
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  readonly file?: string;
  readonly wait?: string;
}

/** `members`: who is in the ensemble, and how that changes, step by step. */
export const members: DefineCommand = (command, host) => {
  command
    .usage(
      '[list]\n       meerkat members plan|apply --add 4=zk4:2888:3888;2181 --remove 1\n       meerkat members hand-over',
    )
    .argument('[action]', 'list, plan, apply or hand-over; without it, list')
    .option('--add <line>', 'a server to add or change: N=host:2888:3888[:observer];2181; repeatable', collect)
    .option('--remove <id>', 'a server to remove; repeatable', collect)
    .option('--file <file>', 'the whole new list instead: its lines server.N=…')
    .option('--wait <seconds>', 'how long apply waits for a server that is to be added, default 60')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat members', 'who is a member, and how each does'],
        ['meerkat members plan --add "4=zk4:2888:3888;2181" --remove 1', 'what replacing server 1 takes'],
        ['meerkat members apply --add "4=zk4:2888:3888;2181" --remove 1', 'and do it'],
        ['meerkat members hand-over', 'let another server lead'],
      ])}`,
    )
    .action((action: string | undefined, options: MembersOptions) =>
      host.run((context) => run(context, action ?? 'list', options)),
    );
};

const EXPLANATION = `Works with our servers and Apache's. Changes need reconfigEnabled=true at all servers and the
right to write /zookeeper/config: --auth digest:super:… as a rule. Each step changes one server and
only if nothing else has changed the list since. hand-over makes the leader an observer and
then a participant again.`;

async function run(context: Context, action: string, options: MembersOptions): Promise<CommandExit> {
  const isChange = action === 'plan' || action === 'apply';
  if (!isChange && (options.add ?? options.remove ?? options.file) !== undefined) {
    throw new InvocationFailure('--add, --remove and --file belong to "members plan" and "members apply"');
  }
  switch (action) {
    case 'list':
      return list(context);
    case 'plan':
      return plan(context, options);
    case 'apply':
      return apply(context, options);
    case 'hand-over':
      return handOver(context);
    default:
      throw new InvocationFailure(`expected list, plan, apply or hand-over, found "${action}"`);
  }
}

/* ---------------------------------------------------------------------------------------------------- list ---- */

interface Row extends ConfiguredMember {
  readonly listed: string;
  readonly role: string | null;
  readonly zxid: bigint | null;
  readonly problem: string | null;
  readonly version: string | null;
}

async function list(context: Context): Promise<CommandExit> {
  const client = await context.connect();
  const config = await readConfig(context, client);
  const states = await askMembers(context, config.members);
  const rows = config.members.map((member): Row => {
    const { role, zxid, problem } = states.get(member.id)!;
    return { ...member, listed: listedRole(member), role, zxid, problem, version: config.version };
  });
  const { paint } = context.report;
  const columns: readonly Column<Row>[] = [
    { name: 'id', value: ({ id }) => id },
    { name: 'listed', value: ({ listed }) => listed },
    { name: 'role', value: ({ role }) => role, text: ({ role }) => role ?? paint.bad('no answer') },
    { name: 'client', value: ({ client }) => client },
    { name: 'zxid', value: ({ zxid }) => (zxid === null ? null : `0x${zxid.toString(16)}`) },
    { name: 'version', value: ({ version }) => version },
    { name: 'problem', value: ({ problem }) => problem },
  ];
  const listing = await context.report.list(columns);
  for (const row of rows) await listing.add(row);
  await listing.end();
  if (rows.length === 0) context.note(NO_ENSEMBLE);
  return rows.length > 0 && rows.every(({ problem }) => problem === null) ? CommandExit.ok : CommandExit.no;
}

function listedRole(member: ConfiguredMember): string {
  return isVoter(member) ? 'participant' : 'observer';
}

/* ------------------------------------------------------------------------------------------- plan and apply ---- */

const STEP_COLUMNS: readonly Column<Step>[] = [
  { name: 'step', value: ({ what }) => what },
  { name: 'participants', value: ({ voters }) => voters.join(',') },
  { name: 'quorum', value: ({ quorum }) => quorum, align: 'right' },
  { name: 'up', value: ({ up }) => up, align: 'right' },
  { name: 'survives', value: survives, text: (step) => (survives(step) ? 'yes' : 'no') },
  { name: 'first', value: ({ first }) => first },
  { name: 'note', value: ({ note }) => note },
];

async function plan(context: Context, options: MembersOptions): Promise<CommandExit> {
  const client = await context.connect();
  const config = await readEnsemble(context, client);
  const steps = await planFor(context, config, await readChanges(config, options));
  const listing = await context.report.list(STEP_COLUMNS);
  for (const step of steps) await listing.add(step);
  await listing.end();
  return steps.every(({ first }) => first === null) ? CommandExit.ok : CommandExit.no;
}

function planFor(
  context: Context,
  config: EnsembleConfig,
  changes: readonly PlannedChange[],
): Promise<readonly Step[]> {
  refuseGroups(config);
  return makePlan(config, changes, (members) => askMembers(context, members));
}

async function apply(context: Context, options: MembersOptions): Promise<CommandExit> {
  const client = await context.connect();
  let config = await readEnsemble(context, client);
  const changes = await readChanges(config, options);
  const waitMs = readSeconds(options.wait ?? '60') * 1000;
  const done: Step[] = [];
  const planned = await planFor(context, config, changes);
  // Nothing to wait for: the first steps would be made, and the others never.
  const impossible = planned.find(({ voters }) => voters.length === 0);
  if (impossible !== undefined)
    throw new CommandFailure(CommandExit.no, `cannot ${impossible.what}: ${impossible.first}; nothing was changed`);
  const listing = await context.report.list(STEP_COLUMNS.slice(0, 2));
  for (const { change } of planned) {
    const step = await waitUntilPossible(context, config, change, waitMs);
    context.note(`${step.what} …`);
    config = await changeMember(client, config, change, context.call);
    done.push(step);
    await listing.add(step);
  }
  await listing.end();
  if (done.length === 0) context.note('nothing to change');
  return CommandExit.ok;
}

async function waitUntilPossible(
  context: Context,
  config: EnsembleConfig,
  change: PlannedChange,
  waitMs: number,
): Promise<Step> {
  const deadline = Date.now() + waitMs;
  let isNoted = false;
  for (;;) {
    const [step] = await planFor(context, config, [change]);
    if (step === undefined) throw new InvocationFailure(`there is no change of server ${change.id}`);
    if (step.first === null) return step;
    if (Date.now() > deadline) throw new CommandFailure(CommandExit.no, `cannot ${step.what}: ${step.first}`);
    if (!isNoted) context.note(`waiting to ${step.what}: ${step.first}`);
    isNoted = true;
    await sleep(500, undefined, { signal: context.signal });
  }
}

/* ------------------------------------------------------------------------------------------------ hand-over ---- */

/** Ends in the same list: the leader is an observer in between, and serves its clients on. */
async function handOver(context: Context): Promise<CommandExit> {
  const client = await context.connect();
  const config = await readEnsemble(context, client);
  const states = await askMembers(context, config.members);
  const leader = config.members.find(({ id }) => states.get(id)?.role === 'leader');
  if (leader === undefined)
    throw new CommandFailure(CommandExit.no, 'no member says that it leads: see "meerkat members"');
  if (config.members.filter(isVoter).length < 3) {
    throw new CommandFailure(CommandExit.no, 'a hand-over needs three participants, so that two stay in between');
  }
  const observing = { id: leader.id, line: asObserver(leader.text) };
  const [step] = await planFor(context, config, [observing]);
  if (step === undefined || !survives(step)) {
    throw new CommandFailure(CommandExit.no, `the others are no quorum: ${step?.first ?? 'too few answer'}`);
  }
  context.note(`server ${leader.id} leads, and becomes an observer …`);
  const between = await changeMember(client, config, observing, context.call);
  const back = { id: leader.id, line: leader.text };
  context.note(`server ${leader.id} becomes a participant again …`);
  try {
    await waitUntilPossible(context, between, back, 60_000);
    await retryUntilSynced(context, client, between, back);
  } catch (error) {
    context.note(
      `server ${leader.id} is an observer now; to undo that: meerkat members apply --add '${leader.id}=${leader.text}'`,
    );
    throw error;
  }
  const after = await askMembers(context, config.members);
  const next = config.members.find(({ id }) => after.get(id)?.role === 'leader');
  await context.report.one(HAND_OVER_COLUMNS, { from: leader.id, to: next?.id ?? null });
  return CommandExit.ok;
}

const HAND_OVER_COLUMNS: readonly Column<{ readonly from: string; readonly to: string | null }>[] = [
  { name: 'from', value: ({ from }) => from },
  { name: 'to', value: ({ to }) => to },
];

/** The new leader may still be gathering its followers. */
async function retryUntilSynced(
  context: Context,
  client: Client,
  config: EnsembleConfig,
  change: PlannedChange,
): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      await changeMember(client, config, change, context.call);
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      const isEarly = code === 'NEWCONFIGNOQUORUM' || code === 'RECONFIGINPROGRESS' || code === 'CONNECTIONLOSS';
      if (!isEarly || Date.now() > deadline) throw error;
      await sleep(200, undefined, { signal: context.signal });
    }
  }
}

function asObserver(line: string): string {
  const [addresses = '', ...rest] = line.split(';');
  return [`${addresses.replace(/:(participant|observer)$/i, '')}:observer`, ...rest].join(';');
}

/* ----------------------------------------------------------------------------------------------------- words ---- */

/** @throws CommandFailure */
function refuseGroups(config: EnsembleConfig): void {
  const line = weightLine(config);
  if (line === null) return;
  throw new CommandFailure(
    CommandExit.no,
    `the members have groups or weights (${line}), which step-by-step changes cannot keep; nothing was changed. Change zoo.cfg at all servers, and restart them`,
  );
}

async function readConfig(context: Context, client: Client): Promise<EnsembleConfig> {
  const { data } = await client.config(context.call);
  return parseConfig(new TextDecoder().decode(data));
}

async function readEnsemble(context: Context, client: Client): Promise<EnsembleConfig> {
  const config = await readConfig(context, client);
  if (config.members.length > 0) return config;
  throw new CommandFailure(CommandExit.no, NO_ENSEMBLE);
}

const NO_ENSEMBLE = 'the server is no member of an ensemble: /zookeeper/config is empty';

async function readChanges(
  current: EnsembleConfig,
  { add = [], remove = [], file }: MembersOptions,
): Promise<readonly PlannedChange[]> {
  if (file !== undefined) {
    if (add.length + remove.length > 0) throw new InvocationFailure('--file excludes --add and --remove');
    const wanted = parseConfig(await readList(file)).members;
    if (wanted.length === 0) throw new InvocationFailure(`${file} has no line server.N=…`);
    const gone = current.members.filter(({ id }) => !wanted.some((member) => member.id === id));
    const changed = wanted.filter(({ id, text }) => current.members.find((member) => member.id === id)?.text !== text);
    return [...changed.map(({ id, text }) => ({ id, line: text })), ...gone.map(({ id }) => ({ id, line: null }))];
  }
  if (add.length + remove.length === 0) throw new InvocationFailure('expected --add, --remove or --file');
  const changes = [...add.map(parseAddition), ...remove.map(parseRemoval)];
  const twice = changes.find(({ id }, i) => changes.findIndex((other) => other.id === id) !== i);
  if (twice !== undefined) throw new InvocationFailure(`server ${twice.id} is there twice`);
  const stranger = remove.find((id) => !current.members.some((member) => member.id === id));
  if (stranger !== undefined) {
    const ids = current.members.map(({ id }) => id).join(', ');
    throw new InvocationFailure(`--remove: server ${stranger} is no member; those are ${ids}`);
  }
  return changes;
}

async function readList(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw fileFailure(`cannot read the members of --file ${file}`, error);
  }
}

function parseAddition(text: string): PlannedChange {
  const [, id = '', line = ''] = /^(?:server\.)?(\d{1,3})=(\S+)$/.exec(text.trim()) ?? [];
  if (id === '') throw new InvocationFailure(`--add: expected 4=host:2888:3888;2181, found "${text}"`);
  return { id, line };
}

function parseRemoval(text: string): PlannedChange {
  if (!/^\d{1,3}$/.test(text)) throw new InvocationFailure(`--remove: expected the id of a server, found "${text}"`);
  return { id: text, line: null };
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds < 0)
    throw new InvocationFailure(`--wait: expected seconds, found "${text}"`);
  return seconds;
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}
