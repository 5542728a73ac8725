export { makeConsoleApp } from './console-app.ts';
export { type ListenOptions, type RunningConsole, startConsole } from './console-server.ts';
export type {
  AdminPorts,
  ClusterOptions,
  ConsoleOptions,
  MonitoredServer,
  PastState,
  PastStates,
  PastTree,
  PastTrees,
} from './options.ts';
export { type OpenPast, openPastService } from './past-client.ts';
export { Refusal } from './refusal.ts';
export { makeToken } from './security.ts';
