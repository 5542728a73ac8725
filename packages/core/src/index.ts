export { AssertionError, assert } from './assert.ts';
export * from './options.ts';
export * from './ports.ts';
export * from './server-stats.ts';
export * from './server-view.ts';
