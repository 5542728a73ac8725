export { AssertionError } from './assert.ts';
export * from './options.ts';
export * from './ports.ts';
export { ServerCore, type ServerCoreEvents, type ServerCoreParts } from './server-core.ts';
export { ServerStats } from './server-stats.ts';
export * from './server-view.ts';
export { formatSessionId } from './session/session.ts';
export { type DiskFault, type DiskObserver, type DiskOperation, MemoryDisk } from './storage/memory-disk.ts';
