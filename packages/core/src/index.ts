export { AssertionError } from './base/assert.ts';
export * from './base/options.ts';
export * from './base/ports.ts';
export { ServerStats } from './base/server-stats.ts';
export * from './base/server-view.ts';
export { ServerCore, type ServerCoreParts } from './server-core.ts';
export type { ServerCoreEvents } from './server-life.ts';
export { formatSessionId } from './session/session.ts';
export { type DiskFault, type DiskObserver, type DiskOperation, MemoryDisk } from './storage/memory-disk.ts';
