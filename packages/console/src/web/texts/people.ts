import { count } from '../figures.ts';

/** Sessions, and the lines that they stand in. */
export const PEOPLE_TEXTS = {
  sessions: {
    title: 'Sessions',
    columns: {
      session: 'Session',
      client: 'Client',
      server: 'Server',
      connected: 'Connected',
      timeout: 'Timeout',
      zxid: 'Last zxid',
      latency: 'Latency, avg/max',
      ephemerals: 'Holds',
      watches: 'Watches',
    },
    ours: 'this console',
    holds: (n: number): string => `Ephemeral znodes (${count(n)})`,
    watched: (n: number): string => `Watched paths (${count(n)})`,
    filter: 'Filter by session, address or path',
    none: 'No server tells of a session.',
    details: (session: string): string => `Session ${session}`,
    end: 'ZooKeeper has no way to end the session of another client; deleting its ephemeral znodes takes from it what it holds.',
  },
  lines: {
    title: 'Locks, elections, queues and barriers',
    none: 'No znode looks like a lock, an election, a queue or a barrier of Curator, kazoo or Meerkat.',
    walking: 'The tree is still being read.',
    holder: 'holds it',
    holds: { election: 'leads', 'double barrier': 'is inside', rendezvous: 'has met' } as Readonly<
      Record<string, string>
    >,
    waitsForRest: 'waits for the others',
    watches: 'watches it: waits until it is removed',
    noWaiters: 'No session watches it, as far as servers tell.',
    waits: (name: string): string => `waits for ${name}`,
    waitsMany: (n: number): string => `waits for ${n} others`,
    since: (age: string): string => `since ${age}`,
    token: (token: string): string => `token ${token}`,
    more: (n: number): string => `and ${count(n)} more`,
    deadlock: 'Deadlock',
    deadlockText: (sessions: string): string =>
      `These sessions wait for each other, and none of them will get what it waits for: ${sessions}. End one of the clients.`,
    kinds: {
      lock: 'Lock',
      'read-write lock': 'Read-write lock',
      semaphore: 'Semaphore',
      election: 'Election',
      queue: 'Queue',
      barrier: 'Barrier',
      'double barrier': 'Double barrier',
      rendezvous: 'Rendezvous or cyclic barrier',
      line: 'Sequential znodes',
    } as Readonly<Record<string, string>>,
    layouts: {
      curator: 'Curator or Meerkat',
      kazoo: 'kazoo',
      meerkat: 'Meerkat',
      any: 'Curator, kazoo or Meerkat',
      unknown: 'layout not known',
    } as Readonly<Record<string, string>>,
    noSession: 'not ephemeral',
    inLine: (n: number): string => `${count(n)} in line`,
    members: (n: number): string => (n === 1 ? '1 is there' : `${count(n)} are there`),
    items: (n: number): string => (n === 1 ? '1 item' : `${count(n)} items`),
    deadlocked: 'in a deadlock',
  },
} as const;
