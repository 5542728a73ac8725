/** What servers tell of themselves in four-letter words: for the console and for commands. */

export type { ConnectionLine } from '../api/messages.ts';
export { askWord, NoAnswerError } from './four-letter-word.ts';
export { type Held, parseConnections, parseHeld } from './holders.ts';
export type { MonitoredServer } from './options.ts';
export {
  type AdminAnswer,
  type AdminIdentity,
  type AdminPorts,
  type AdminQuestion,
  endSession,
  type FoundSession,
  lookAtSession,
  type NotEnded,
} from './session-end.ts';
