export { PersistentEphemeral, type PersistentEphemeralOptions, type Presence } from './groups/persistent-ephemeral.ts';
export type { Layout } from './layout.ts';
export { type Guard, Guarded } from './locks/guarded.ts';
export type { Held, Holding } from './locks/holding.ts';
export type { Contending } from './locks/line.ts';
export { NotHeldError } from './locks/not-held-error.ts';
export { compareBySequence, compareSequences, sequenceOf, withoutSequence } from './sequence.ts';
