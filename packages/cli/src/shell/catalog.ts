import type { CatalogEntry } from '../run/command.ts';
import { nearestTo } from './nearest.ts';
import type { ShellCatalogEntry, ShellCommands } from './shell-command.ts';

/** Commands of the command line that have no meaning inside the shell. */
const OUTSIDE: readonly string[] = [
  ...['shell', 'completion'],
  // They are about files of this machine.
  ...['log', 'snapshot', 'backup', 'restore', 'history', 'undo'],
  // They ask each server, with whom the session of the shell is not.
  ...['status', 'health', '4lw', 'top', 'sessions', 'watches', 'ephemerals', 'console', 'doctor'],
  // They lead servers through a change, each by its own ports.
  ...['drain', 'rebalance', 'roll', 'migrate'],
];

const ZOOKEEPER = 'Under the names of zkCli:';
const SHELL = 'This shell:';

/** What only the shell has: what zkCli calls otherwise, and what is about the shell itself. */
const OWN: readonly ShellCatalogEntry[] = [
  {
    name: 'delete',
    summary: 'delete one znode without children',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/delete.ts')).deleteOne,
  },
  {
    name: 'deleteall',
    summary: 'delete a znode and everything below it',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/deleteall.ts')).deleteAll,
  },
  {
    name: 'sync',
    summary: 'wait until the server has caught up with the leader',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/sync.ts')).sync,
  },
  {
    name: 'getAcl',
    summary: 'show who may do what with a znode',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/get-acl.ts')).getAcl,
  },
  {
    name: 'setAcl',
    summary: 'say who may do what with a znode',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/set-acl.ts')).setAcl,
  },
  {
    name: 'addauth',
    summary: 'give the server credentials',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/addauth.ts')).addAuth,
  },
  {
    name: 'whoami',
    summary: 'show as whom the server knows this session',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/whoami.ts')).whoAmI,
  },
  {
    name: 'setquota',
    summary: 'limit the number or the bytes of znodes below a path',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/setquota.ts')).setQuota,
  },
  {
    name: 'listquota',
    summary: 'show the limits of a path, and what is used',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/listquota.ts')).listQuota,
  },
  {
    name: 'delquota',
    summary: 'take limits off a path',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/delquota.ts')).delQuota,
  },
  {
    name: 'addWatch',
    summary: 'print every change of a znode, and of those below it',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/add-watch.ts')).addWatch,
  },
  {
    name: 'removewatches',
    summary: 'take watches off a znode',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/removewatches.ts')).removeWatches,
  },
  {
    name: 'getEphemerals',
    summary: 'list the ephemeral znodes of this session',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/get-ephemerals.ts')).getEphemerals,
  },
  {
    name: 'getAllChildrenNumber',
    summary: 'count the znodes below a znode',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/get-all-children-number.ts')).getAllChildrenNumber,
  },
  {
    name: 'config',
    summary: 'show the members of the ensemble',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/config.ts')).config,
  },
  {
    name: 'reconfig',
    summary: 'change the members of the ensemble',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/reconfig.ts')).reconfig,
  },
  {
    name: 'version',
    summary: 'print the version of this program',
    group: ZOOKEEPER,
    load: async () => (await import('./zkcli/version.ts')).version,
  },
  {
    name: 'cd',
    summary: 'go to a znode; others may be named from there',
    group: SHELL,
    load: async () => (await import('./control/cd.ts')).cd,
  },
  {
    name: 'pwd',
    summary: 'print the current znode',
    group: SHELL,
    load: async () => (await import('./control/cd.ts')).pwd,
  },
  {
    name: 'connect',
    summary: 'open a new session, also with other servers',
    group: SHELL,
    load: async () => (await import('./control/connection.ts')).connect,
  },
  {
    name: 'close',
    summary: 'end the session and stay in the shell',
    group: SHELL,
    load: async () => (await import('./control/connection.ts')).close,
  },
  {
    name: 'history',
    summary: 'list the latest lines with their numbers',
    group: SHELL,
    load: async () => (await import('./control/history.ts')).history,
  },
  {
    name: 'redo',
    summary: 'run a line again, by its number',
    group: SHELL,
    load: async () => (await import('./control/history.ts')).redo,
  },
  {
    name: 'printwatches',
    summary: 'say whether the events of watches are printed',
    group: SHELL,
    load: async () => (await import('./control/printwatches.ts')).printWatches,
  },
  {
    name: 'help',
    summary: 'list the commands, or explain one',
    group: SHELL,
    load: async () => (await import('./control/help.ts')).help,
  },
  {
    name: 'quit',
    summary: 'leave the shell',
    group: SHELL,
    load: async () => (await import('./control/quit.ts')).quit,
  },
  {
    name: 'exit',
    summary: 'leave the shell',
    group: SHELL,
    load: async () => (await import('./control/quit.ts')).quit,
  },
];

/** Everything that can be typed. A command of the command line wins over one of the shell. */
export class ShellCatalog implements ShellCommands {
  readonly entries: readonly ShellCatalogEntry[];
  readonly groups: readonly string[];

  /** @param catalog the commands of the command line */
  constructor(catalog: readonly CatalogEntry[]) {
    const shared = catalog.filter(({ name, isHidden }) => !OUTSIDE.includes(name) && isHidden !== true);
    this.entries = [...shared, ...OWN.filter(({ name }) => !shared.some((entry) => entry.name === name))];
    this.groups = [...new Set(this.entries.map(({ group }) => group))];
  }

  find(name: string): ShellCatalogEntry | null {
    return this.entries.find((entry) => entry.name === name) ?? null;
  }

  describeUnknown(name: string): string {
    const near = nearestTo(
      name,
      this.entries.map((entry) => entry.name),
    );
    return `Command not found: ${name} (${near === null ? '' : `did you mean ${near}? `}"help" lists all)`;
  }
}
