import type { Client } from '@meerkat/client';
import { type EnsembleConfig, parseConfig } from './ensemble-config.ts';
import { isVoter, memberOf, type PlannedChange } from './plan.ts';

/** The timeout and signal of a call. */
type Call = Parameters<Client['config']>[0];

/**
 * One step: sends one request, conditional on the version of the configuration, and checks the result when the reply
 * was lost with the leader.
 *
 * @returns the new configuration
 * @throws ZooKeeperError
 */
export async function changeMember(
  client: Client,
  config: EnsembleConfig,
  change: PlannedChange,
  call: Call,
): Promise<EnsembleConfig> {
  const { id, line } = change;
  const fromVersion = config.version === null ? {} : { fromVersion: BigInt(`0x${config.version}`) };
  const asked = line === null ? { leaving: [Number(id)] } : { joining: [`server.${id}=${line}`] };
  try {
    const { data } = await client.reconfig({ ...asked, ...fromVersion, ...call });
    return parseConfig(new TextDecoder().decode(data));
  } catch (error) {
    const isUnknown = (error as { outcome?: string }).outcome === 'unknown';
    if (!isUnknown) throw error;
    const now = parseConfig(new TextDecoder().decode((await client.config(call)).data));
    // A server that only moves is listed under its id before, too.
    if (now.version !== config.version && isMade(now, change)) return now;
    throw error;
  }
}

function isMade({ members }: EnsembleConfig, change: PlannedChange): boolean {
  const member = members.find(({ id }) => id === change.id);
  const due = memberOf(change);
  return due === null ? member === undefined : member !== undefined && isVoter(member) === isVoter(due);
}
