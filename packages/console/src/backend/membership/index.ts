/** Who is in an ensemble, and what a change of that takes: for the console and for commands. */

export { changeMember } from './change-member.ts';
export { type EnsembleConfig, type Member, parseConfig } from './ensemble-config.ts';
export {
  type Change,
  isVoter,
  type MemberState,
  makePlan,
  memberOf,
  planSteps,
  type Step,
  survives,
  weightLine,
} from './plan.ts';
