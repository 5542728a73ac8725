/** Server states from four-letter words: for the console and for commands. */

export type { ConnectionLine } from '../api/messages.ts';
export { askWord, NoAnswerError } from './four-letter-word.ts';
export { type Held, parseConnections, parseHeld } from './holders.ts';
export type { AdminAnswer, AdminPorts, AdminQuestion, MonitoredServer } from './options.ts';
export {
  type AdminIdentity,
  endSession,
  type FoundSession,
  lookAtSession,
  type NotEnded,
} from './session-end.ts';
