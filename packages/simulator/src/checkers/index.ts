/** The checkers of a simulated ensemble; `README.md` in this directory says which invariant is checked where. */

export type { Asked } from './answered-rules.ts';
export type { Members } from './cluster.ts';
export type { CommittedBase } from './committed-tree.ts';
export type { Limits } from './contact-rules.ts';
export type { FinalState, FinalZnode } from './final-rules.ts';
export { type CheckHistoryOptions, checkHistory, foldCommitted } from './history.ts';
export { type FoundState, LiveChecker, type LiveCheckerOptions, type LoggedTxn } from './live-checker.ts';
export type { Violation } from './violation.ts';
export { type WireEvent, WireTap, type WireTapOptions } from './wire.ts';
