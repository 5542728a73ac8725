import { count } from '../figures.ts';

/** Sessions and lines. */
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
    none: 'No server reports a session.',
    details: (session: string): string => `Session ${session}`,
    end: {
      open: 'End session…',
      ours: 'It is the session of this page: log out to end it.',
      readOnly: 'This console only reads. Started with --write it ends sessions at servers of Meerkat.',
      looking: 'Asking whether it can be ended…',
      can: 'Its client may be at work still: ending its session takes from it what it holds.',
      title: (session: string): string => `End session ${session}?`,
      text: (client: string, server: string): string =>
        `The client at ${client}, connected to ${server}, loses its session at once, and clients that wait for it continue. It notices when it is told; until then it may believe that it holds what it held. If it still runs, it begins another session.`,
      goes: (n: number): string =>
        n === 1 ? '1 ephemeral znode goes with it' : `${count(n)} ephemeral znodes go with it`,
      watches: (n: number): string => (n === 1 ? '1 path is watched no more' : `${count(n)} paths are watched no more`),
      more: (n: number): string => `and ${count(n)} more`,
      submit: 'End session',
      done: (session: string, n: number): string =>
        `Session ${session} has ended, and ${n === 1 ? '1 ephemeral znode' : `${count(n)} ephemeral znodes`} with it.`,
    },
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
    noWaiters: 'No session watches it, as far as servers report.',
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
