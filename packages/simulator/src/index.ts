export { SeededRandom } from './seeded-random.ts';
export { Timeline } from './timeline.ts';
export {
  type CloseReason,
  type ConnectFailure,
  DEFAULT_LINK,
  type LinkQuality,
  VirtualNetwork,
} from './virtual-network.ts';
export { DEFAULT_DISK, type DiskQuality, VirtualServer, type VirtualServerOptions } from './virtual-server.ts';
export { VirtualWorld, type VirtualWorldOptions } from './virtual-world.ts';
