/** The members of an ensemble, and how to change them: for the console and for commands. */

export { changeMember } from './change-member.ts';
export { type ConfiguredMember, type EnsembleConfig, parseConfig } from './ensemble-config.ts';
export {
  isVoter,
  type MemberState,
  makePlan,
  memberOf,
  type PlannedChange,
  planSteps,
  type Step,
  survives,
  weightLine,
} from './plan.ts';
