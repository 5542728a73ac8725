export { makeConsoleApp } from './console-app.ts';
export { type ListenOptions, type RunningConsole, startConsole } from './console-server.ts';
export type {
  AdminPorts,
  ClusterOptions,
  ConsoleOptions,
  MonitoredServer,
  PastState,
  PastTree,
  PastTrees,
} from './options.ts';
export { makeToken } from './security.ts';
