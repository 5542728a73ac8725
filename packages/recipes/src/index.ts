export { compareBySequence, compareSequences, sequenceOf, withoutSequence } from './sequence.ts';
