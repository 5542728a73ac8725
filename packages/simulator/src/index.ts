export { History, type HistoryEntry, type Operation } from './history.ts';
export { SeededRandom } from './seeded-random.ts';
export { Timeline } from './timeline.ts';
export type { WireTap } from './virtual-client.ts';
export { VirtualClock } from './virtual-clock.ts';
export { type EnsembleShape, makeMembership, VirtualEnsemble } from './virtual-ensemble.ts';
export {
  type CloseReason,
  type ConnectFailure,
  DEFAULT_LINK,
  type LinkQuality,
  VirtualNetwork,
} from './virtual-network.ts';
export { DEFAULT_DISK, type DiskQuality, VirtualServer, type VirtualServerOptions } from './virtual-server.ts';
export { VirtualWorld, type VirtualWorldOptions } from './virtual-world.ts';
export type { WorldWatcher } from './world-watcher.ts';
