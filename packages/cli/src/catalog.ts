import type { DefineCommand } from './run/command.ts';

/** What `meerkat --help` says of a command, and where it is. */
export interface CatalogEntry {
  readonly name: string;
  /** One line, beginning with a verb. */
  readonly summary: string;
  readonly group: CommandGroup;
  /** Run by programs, not by people: no help names it, and the shell has it not. Default false. */
  readonly isHidden?: boolean;
  /** The code of a command is loaded when it is run. */
  readonly load: () => Promise<DefineCommand>;
}

/** In the order of the help. */
export const COMMAND_GROUPS = ['Data:', 'Script:', 'Shell:', 'Servers:', 'Others:'] as const;
export type CommandGroup = (typeof COMMAND_GROUPS)[number];

export const CATALOG: readonly CatalogEntry[] = [
  {
    name: 'ls',
    summary: 'list the children of znodes',
    group: 'Data:',
    load: async () => (await import('./commands/ls.ts')).ls,
  },
  {
    name: 'get',
    summary: 'print the data of znodes',
    group: 'Data:',
    load: async () => (await import('./commands/get.ts')).get,
  },
  {
    name: 'stat',
    summary: 'print versions, times, sizes and owners of znodes',
    group: 'Data:',
    load: async () => (await import('./commands/stat.ts')).stat,
  },
  {
    name: 'tree',
    summary: 'draw what is below znodes',
    group: 'Data:',
    load: async () => (await import('./commands/tree.ts')).tree,
  },
  {
    name: 'find',
    summary: 'find znodes by name, size, age or owner',
    group: 'Data:',
    load: async () => (await import('./commands/find.ts')).find,
  },
  {
    name: 'grep',
    summary: 'search the data of znodes',
    group: 'Data:',
    load: async () => (await import('./commands/grep.ts')).grep,
  },
  {
    name: 'du',
    summary: 'sum up how large subtrees are',
    group: 'Data:',
    load: async () => (await import('./commands/du.ts')).du,
  },
  {
    name: 'create',
    summary: 'create a znode',
    group: 'Data:',
    load: async () => (await import('./commands/create.ts')).create,
  },
  {
    name: 'set',
    summary: 'replace the data of a znode',
    group: 'Data:',
    load: async () => (await import('./commands/set.ts')).set,
  },
  {
    name: 'edit',
    summary: 'edit the data of a znode in an editor',
    group: 'Data:',
    load: async () => (await import('./commands/edit.ts')).edit,
  },
  {
    name: 'rm',
    summary: 'delete znodes',
    group: 'Data:',
    load: async () => (await import('./commands/rm.ts')).rm,
  },
  {
    name: 'cp',
    summary: 'copy znodes and trees, also to another service',
    group: 'Data:',
    load: async () => (await import('./commands/cp.ts')).cp,
  },
  {
    name: 'mv',
    summary: 'move znodes to another place in the tree',
    group: 'Data:',
    load: async () => (await import('./commands/mv.ts')).mv,
  },
  {
    name: 'diff',
    summary: 'compare two trees of services or exports',
    group: 'Data:',
    load: async () => (await import('./commands/diff.ts')).diff,
  },
  {
    name: 'export',
    summary: 'write a tree to a file or directory',
    group: 'Data:',
    load: async () => (await import('./commands/export.ts')).exportTree,
  },
  {
    name: 'import',
    summary: 'read a tree from a file or directory',
    group: 'Data:',
    load: async () => (await import('./commands/import.ts')).importTree,
  },
  {
    name: 'acl',
    summary: 'show and change who may do what with a znode',
    group: 'Data:',
    load: async () => (await import('./commands/acl.ts')).acl,
  },
  {
    name: 'quota',
    summary: 'limit how much a part of the tree holds',
    group: 'Data:',
    load: async () => (await import('./commands/quota.ts')).quota,
  },
  {
    name: 'wait',
    summary: 'wait until a znode is as it should be',
    group: 'Script:',
    load: async () => (await import('./commands/wait.ts')).wait,
  },
  {
    name: 'watch',
    summary: 'tell changes as they come',
    group: 'Script:',
    load: async () => (await import('./commands/watch.ts')).watch,
  },
  {
    name: 'lock',
    summary: 'run a command while holding a lock',
    group: 'Script:',
    load: async () => (await import('./commands/lock.ts')).lock,
  },
  {
    name: 'elect',
    summary: 'run a command while leading',
    group: 'Script:',
    load: async () => (await import('./commands/elect.ts')).elect,
  },
  {
    name: 'txn',
    summary: 'carry out several changes, all or none',
    group: 'Script:',
    load: async () => (await import('./commands/txn.ts')).txn,
  },
  {
    name: 'shell',
    summary: 'work in one session, at a terminal or by a script',
    group: 'Shell:',
    load: async () => (await import('./commands/shell.ts')).shell,
  },
  {
    name: 'profiles',
    summary: 'list the named connections, and check them',
    group: 'Others:',
    load: async () => (await import('./commands/profiles.ts')).profiles,
  },
  {
    name: 'completion',
    summary: 'print what teaches bash, zsh or fish to complete meerkat',
    group: 'Others:',
    load: async () => (await import('./commands/completion.ts')).completion,
  },
  {
    name: 'complete',
    summary: 'tell a shell what can stand at the cursor',
    group: 'Others:',
    isHidden: true,
    load: async () => (await import('./commands/complete.ts')).complete,
  },
];
