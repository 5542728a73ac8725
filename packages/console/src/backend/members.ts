import type { MemberChange, MemberInfo, MembersInfo, MembersPlan } from '../api/messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import { Fields } from './fields.ts';
import { askWord, NoAnswerError } from './four-letter-word.ts';
import {
  type ConfiguredMember,
  changeMember,
  type EnsembleConfig,
  isVoter,
  type MemberState,
  makePlan,
  type PlannedChange,
  parseConfig,
  survives,
  weightLine,
} from './membership/index.ts';
import { Refusal } from './refusal.ts';
import { parseServer } from './servers-monitor.ts';

/** The members of the ensemble, and their answers. @throws ZooKeeperError */
export async function readMembers(session: ClusterSession): Promise<MembersInfo> {
  const config = await readConfig(session);
  const states = await askMembers(session, config.members);
  return {
    version: config.version,
    weightLine: weightLine(config),
    members: config.members.map((member): MemberInfo => {
      const { id, text, client } = member;
      const { role = null, problem = null } = states.get(id) ?? {};
      const weight = new RegExp(`^weight\\.${id}=(.*)$`, 'm').exec(config.text)?.[1] ?? null;
      return { id, line: text, isVoter: isVoter(member), client, weight, group: groupOf(config, id), role, problem };
    }),
  };
}

/**
 * The steps of the changes.
 *
 * @param isWritable false: servers that are not in the configuration are not contacted, so that read-only users cannot
 *   make the console connect to arbitrary addresses
 */
export async function planMembers(session: ClusterSession, fields: Fields, isWritable: boolean): Promise<MembersPlan> {
  const changes = fields.list('changes').map((change) => readChange(new Fields(change)));
  // Each new server is contacted at its own address.
  if (changes.length > CHANGES_MAX) {
    throw new Refusal(400, 'bad-member', `a plan has at most ${CHANGES_MAX} changes, and this one ${changes.length}`);
  }
  const config = await readEnsemble(session);
  const steps = await makePlan(config, changes, (members) =>
    askMembers(session, isWritable ? members : members.filter((member) => isListed(config, member))),
  );
  return { version: config.version, steps: steps.map((step) => ({ ...step, survives: survives(step) })) };
}

/**
 * Performs one step, if nothing else has changed the configuration since it was planned.
 *
 * @returns the new version of the configuration
 * @throws Refusal `not-yet` when something has to be done before; ZooKeeperError
 */
export async function takeStep(session: ClusterSession, fields: Fields): Promise<Pick<MembersPlan, 'version'>> {
  const change = readChange(fields);
  const version = fields.isNull('version') ? null : fields.text('version');
  if (version !== null && !/^[0-9a-f]{1,16}$/.test(version)) throw new Refusal(400, 'bad-version', 'no such version');
  const config = await readEnsemble(session);
  const [step] = await makePlan(config, [change], (members) => askMembers(session, members));
  if (step !== undefined && step.first !== null) throw new Refusal(409, 'not-yet', step.first);
  const after = await changeMember(session.client, { ...config, version }, change, session.call);
  return { version: after.version };
}

async function readConfig({ client, call }: ClusterSession): Promise<EnsembleConfig> {
  return parseConfig(new TextDecoder().decode((await client.config(call)).data));
}

/** @throws Refusal when its members cannot be changed individually */
async function readEnsemble(session: ClusterSession): Promise<EnsembleConfig> {
  const config = await readConfig(session);
  if (config.members.length === 0)
    throw new Refusal(409, 'no-ensemble', 'the server is no member of an ensemble: /zookeeper/config names none');
  const line = weightLine(config);
  if (line === null) return config;
  throw new Refusal(
    409,
    'weights',
    `the members have groups or weights (${line}), which step-by-step changes cannot keep`,
  );
}

/** Each at its client port, with the connection settings of this cluster. */
async function askMembers(
  { cluster }: ClusterSession,
  members: readonly ConfiguredMember[],
): Promise<ReadonlyMap<string, MemberState>> {
  const tls = cluster.servers[0]?.tls ?? null;
  const states = members.map(async ({ id, client }): Promise<[string, MemberState]> => {
    if (client === null) return [id, { role: null, problem: 'its line names no client port' }];
    const colon = client.lastIndexOf(':');
    const host = client.slice(0, colon).replace(/^\[|\]$/g, '');
    try {
      const text = await askWord({ host, port: Number(client.slice(colon + 1)), name: client, tls }, 'srvr', ANSWER_MS);
      return [id, { role: parseServer(text).role, problem: null }];
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      return [id, { role: error.kind === 'not serving' ? 'looking' : null, problem: error.message }];
    }
  });
  return new Map(await Promise.all(states));
}

function isListed({ members }: EnsembleConfig, { client }: ConfiguredMember): boolean {
  return members.some((member) => member.client === client);
}

function groupOf({ text }: EnsembleConfig, id: string): string | null {
  for (const [, group, ids = ''] of text.matchAll(/^group\.(\d+)=(.*)$/gm)) {
    if (ids.split(':').includes(id)) return group ?? null;
  }
  return null;
}

function readChange(fields: Fields): MemberChange & PlannedChange {
  const id = fields.text('id');
  const line = fields.isNull('line') ? null : fields.text('line');
  if (!/^\d{1,3}$/.test(id))
    throw new Refusal(400, 'bad-member', 'the id of a server is a number of up to three digits');
  // The request separates two servers with a comma.
  if (line !== null && !/^[^\s,;]{1,500};[^\s,;]{1,200}$/.test(line)) {
    throw new Refusal(400, 'bad-member', 'expected host:2888:3888:participant;2181 without spaces and commas');
  }
  return { id, line };
}

const ANSWER_MS = 3000;
const CHANGES_MAX = 100;
