/** What a server that looks for a leader makes of the membership that another one follows, by what that one says. */
import { epochOf, findMembershipFault, formatZxid, type Membership, ZXID_ZERO } from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import { EPOCHS_FAR } from '../election/believable.ts';
import { hasSameContent, type Members, parseUsableMembership } from './members.ts';

export interface KnownMembership {
  readonly members: Members;
  readonly isReconfigEnabled: boolean;
  readonly rules: EnsembleOptions['membershipRules'];
  /** Of this server: an epoch far beyond is not believed. */
  readonly acceptedEpoch: number;
}

/** One that is to be taken over, or a warning for people; null: nothing is to be done. */
export type Heard = { readonly newer: Membership } | { readonly warning: string } | null;

/** A newer one is taken over from a member: it is committed, or that server would not follow it. */
export function judgeMembership(from: number, configText: string, known: KnownMembership): Heard {
  if (!known.isReconfigEnabled) return describeDifference(from, configText);
  const membership = parseUsableMembership(configText);
  const { membership: own } = known.members;
  if ('fault' in membership) {
    return { warning: `server ${from} follows a membership that cannot be used: ${membership.fault}` };
  }
  if (membership.version > own.version) return judgeNewer(from, membership, known);
  const isSameVersion = membership.version === own.version && own.version > ZXID_ZERO;
  return isSameVersion && !hasSameContent(membership, own) ? describeDifference(from, configText) : null;
}

function judgeNewer(from: number, membership: Membership, { members, rules, acceptedEpoch }: KnownMembership): Heard {
  const fault = members.isMember(from) ? findMembershipFault(membership, rules) : 'it is no member';
  const isFar = epochOf(membership.version) - acceptedEpoch > EPOCHS_FAR;
  if (fault === null && !isFar) return { newer: membership };
  const why = fault ?? `its epoch is far beyond ${acceptedEpoch}`;
  const version = formatZxid(membership.version);
  return { warning: `server ${from} tells of membership ${version}, which is not believed: ${why}` };
}

function describeDifference(from: number, configText: string): Heard {
  const theirs = configText.replaceAll('\n', ', ');
  return {
    warning: `server ${from} follows a membership that differs from this one's: ${theirs}. Servers of an ensemble need the same list`,
  };
}
