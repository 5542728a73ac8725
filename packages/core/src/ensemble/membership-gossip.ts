/** What a looking server does with the membership that another server reports. */
import { epochOf, findMembershipFault, formatZxid, type Membership, ZXID_ZERO } from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import { EPOCHS_FAR } from '../election/plausible.ts';
import { hasSameContent, type Members, parseUsableMembership } from './members.ts';

export interface KnownMembership {
  readonly members: Members;
  readonly isReconfigEnabled: boolean;
  readonly rules: EnsembleOptions['membershipRules'];
  /** Of this server: a membership of an epoch far beyond it is not trusted. */
  readonly acceptedEpoch: number;
}

/** A membership to adopt, or a warning to log; null: nothing to do. */
export type GossipResult = { readonly newer: Membership } | { readonly warning: string } | null;

/** A newer membership is adopted if a member reports it: it is committed, or that server would not follow it. */
export function assessMembership(from: number, configText: string, known: KnownMembership): GossipResult {
  if (!known.isReconfigEnabled) return describeDifference(from, configText);
  const membership = parseUsableMembership(configText);
  const { membership: own } = known.members;
  if ('fault' in membership) {
    return { warning: `server ${from} follows a membership that cannot be used: ${membership.fault}` };
  }
  if (membership.version > own.version) return assessNewer(from, membership, known);
  const isSameVersion = membership.version === own.version && own.version > ZXID_ZERO;
  return isSameVersion && !hasSameContent(membership, own) ? describeDifference(from, configText) : null;
}

function assessNewer(
  from: number,
  membership: Membership,
  { members, rules, acceptedEpoch }: KnownMembership,
): GossipResult {
  const fault = members.isMember(from) ? findMembershipFault(membership, rules) : 'it is no member';
  const isFar = epochOf(membership.version) - acceptedEpoch > EPOCHS_FAR;
  if (fault === null && !isFar) return { newer: membership };
  const why = fault ?? `its epoch is far beyond ${acceptedEpoch}`;
  const version = formatZxid(membership.version);
  return { warning: `server ${from} reports membership ${version}, which is ignored: ${why}` };
}

function describeDifference(from: number, configText: string): GossipResult {
  const theirs = configText.replaceAll('\n', ', ');
  return {
    warning: `server ${from} follows a membership that differs from this one's: ${theirs}. Servers of an ensemble need the same list`,
  };
}
