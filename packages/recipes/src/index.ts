export {
  Group,
  type GroupLayout,
  type GroupObservation,
  type GroupOptions,
  type GroupView,
  type JoinOptions,
  type Member,
  type Membership,
} from './groups/group.ts';
export { PersistentEphemeral, type PersistentEphemeralOptions, type Presence } from './groups/persistent-ephemeral.ts';
export type { Layout } from './layout.ts';
export { type Guard, Guarded } from './locks/guarded.ts';
export type { Held, Holding } from './locks/holding.ts';
export type { Contending } from './locks/line.ts';
export { Lock } from './locks/lock.ts';
export { Mutex, type MutexOptions } from './locks/mutex.ts';
export { NotHeldError } from './locks/not-held-error.ts';
export { SequenceExhaustedError } from './locks/overflow.ts';
export { compareBySequence, compareSequences, sequenceOf, withoutSequence } from './sequence.ts';
