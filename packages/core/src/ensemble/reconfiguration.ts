import {
  ErrorCode,
  formatMembership,
  formatZxid,
  type MembershipRules,
  type ReconfigRequest,
  type Zxid,
} from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { Quorum } from '../election/quorum.ts';
import type { ReconfigPlan, Reconfigurer } from '../request/reconfig-preparer.ts';
import { quorumOf } from './members.ts';
import { planMembership } from './membership-change.ts';
import type { MembershipKeeper } from './membership-keeper.ts';

/** The server id becomes the top byte of session ids; Apache servers truncate a larger one. */
const SERVER_ID_MAX = 255;

/** The leader's checks of a reconfig, in Apache's order; if one fails, nothing changes. */
export class Reconfiguration implements Reconfigurer {
  readonly #memberships: MembershipKeeper;
  readonly #leader: { wouldReach(quorum: Quorum): boolean };
  readonly #rules: MembershipRules;
  readonly #trace: Trace;

  constructor(
    memberships: MembershipKeeper,
    leader: { wouldReach(quorum: Quorum): boolean },
    rules: MembershipRules,
    trace: Trace,
  ) {
    this.#memberships = memberships;
    this.#leader = leader;
    this.#rules = rules;
    this.#trace = trace;
  }

  plan(request: ReconfigRequest, version: Zxid): ReconfigPlan {
    if (!this.#memberships.isReconfigEnabled) return ErrorCode.reconfigDisabled;
    const { proposed, newest } = this.#memberships.members;
    if (proposed !== null) return ErrorCode.reconfigInProgress;
    const { currentConfigId } = request;
    if (currentConfigId !== -1 && currentConfigId !== newest.version) {
      this.#report(
        `it is to change version ${formatId(currentConfigId)}, and ${formatZxid(newest.version)} is in force`,
      );
      return ErrorCode.badVersion;
    }
    const planned = planMembership(newest, request, this.#rules, version);
    if ('fault' in planned) {
      this.#report(planned.fault);
      return ErrorCode.badArguments;
    }
    if (!this.#leader.wouldReach(quorumOf(planned))) {
      this.#report('too few of the new participants follow this leader and are up to date: start them first');
      return ErrorCode.newConfigNoQuorum;
    }
    const known = new Set(newest.members.map(({ serverId }) => serverId));
    const excess = planned.members.find(({ serverId }) => serverId > SERVER_ID_MAX && !known.has(serverId));
    if (excess === undefined) return formatMembership(planned);
    this.#report(`server.${excess.serverId}: ids must be at most ${SERVER_ID_MAX}`);
    return { errorIfAllowed: ErrorCode.badArguments };
  }

  #report(reason: string): void {
    this.#trace.emit({ kind: 'warning', message: `a reconfig is refused: ${reason}` });
  }
}

function formatId(id: number): string {
  return id < 0 ? String(id) : id.toString(16);
}
