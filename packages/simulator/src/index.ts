export type { CommittedTree } from './checkers/committed-tree.ts';
export {
  type CheckHistoryOptions,
  type CommittedBase,
  checkHistory,
  type FinalState,
  type FinalZnode,
  foldCommitted,
  type LoggedTxn,
  type Violation,
} from './checkers/index.ts';
export type { ZnodeState } from './checkers/znode-state.ts';
export { committedTree } from './committed-of.ts';
export { type FileSource, readLogs } from './disk-reader.ts';
export {
  ALL_FAULT_KINDS,
  FAULT_KINDS,
  type Fault,
  type FaultKind,
  type FaultPlanOptions,
  formatFault,
  LEADER,
  parseFault,
  planChanges,
  planFaults,
} from './fault.ts';
export { History, type HistoryEntry, type Operation, type OperationRequest } from './history.ts';
export { DEFAULT_LINK, type LinkQuality } from './link-quality.ts';
export { Nemesis } from './nemesis.ts';
export { SeededRandom } from './seeded-random.ts';
export { shrinkFailure } from './shrink-failure.ts';
export { type SimulateOptions, type SimulateResult, type SimulateStats, simulate } from './simulate.ts';
export { Timeline } from './timeline.ts';
export { type ClientTap, makeClientClock, VirtualTransport } from './virtual-client.ts';
export { VirtualClock } from './virtual-clock.ts';
export { type EnsembleShape, type MembershipShape, makeMembership, VirtualEnsemble } from './virtual-ensemble.ts';
export { type CloseReason, type ConnectFailure, VirtualNetwork } from './virtual-network.ts';
export { DEFAULT_DISK, type DiskQuality, VirtualServer, type VirtualServerOptions } from './virtual-server.ts';
export { VirtualWorld, type VirtualWorldOptions, WORLD_CHANNEL } from './virtual-world.ts';
export { Workload } from './workload.ts';
export { hostWorkload, type WorkloadHost } from './workload-host.ts';
export { DEFAULT_WORKLOAD, type WorkloadOptions } from './workload-options.ts';
export type { WorldWatcher } from './world-watcher.ts';
