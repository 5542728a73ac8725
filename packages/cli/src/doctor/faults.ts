/**
 * What `meerkat doctor` can name: every fault with what it means and what to do. Names are stable, for scripts.
 *
 * `meerkat help faults` lists them; a test holds to each a test that stages it.
 */
import { CONNECTING, type ConnectingFault } from './connecting-faults.ts';
import type { FaultEntry } from './fault-entry.ts';

type QuorumFault =
  | 'voters-missing'
  | 'no-leader'
  | 'not-serving'
  | 'read-only'
  | 'two-leaders'
  | 'ensembles-mixed'
  | 'election-port-closed'
  | 'quorum-port-taken'
  | 'myid-twice'
  | 'members-differ'
  | 'epoch-ahead'
  | 'quorum-tls-differs'
  | 'quorum-login-refused';

const QUORUM: Readonly<Record<QuorumFault, FaultEntry>> = {
  'voters-missing': {
    about: 'quorum',
    meaning: 'too few voting servers for a quorum',
    advice: 'start the servers that are named',
  },
  'no-leader': {
    about: 'quorum',
    meaning: 'enough servers, and they find no leader',
    advice: 'give doctor their logs and files with --log and --config: the reason is between the servers',
  },
  'not-serving': {
    about: 'quorum',
    meaning: 'this server has not joined the others and serves no clients',
    advice: 'give doctor its log with --log: the reason is between it and the leader',
  },
  'read-only': {
    about: 'quorum',
    meaning: 'this server has lost the quorum and answers reads only',
    advice: 'look at the network between it and the others',
  },
  'two-leaders': {
    about: 'quorum',
    meaning: 'two servers lead: of two ensembles, or one does not know yet that it was deposed',
    advice: 'ask again in a few seconds; if it stays so, the connect string mixes two ensembles',
  },
  'ensembles-mixed': {
    about: 'quorum',
    meaning: 'some servers stand alone, with data of their own',
    advice:
      'name the servers of one ensemble only; a server that should be a member has no list of members in its file',
  },
  'election-port-closed': {
    about: 'quorum',
    meaning: 'a server cannot reach the election port of another one',
    advice: 'start that server; compare its line server.N in the files of both; open the port in the firewall',
  },
  'quorum-port-taken': {
    about: 'quorum',
    meaning: 'a port between servers is in use, or is of another machine',
    advice: 'stop what listens there; two servers with one myid on one machine are in each other’s way too',
  },
  'myid-twice': {
    about: 'quorum',
    meaning: 'two servers have the same myid',
    advice: 'give each server the number of its own line server.N, in the file myid of its data directory',
  },
  'members-differ': {
    about: 'quorum',
    meaning: 'the servers have different lists of members',
    advice: 'make the lists alike, and restart the servers whose list was wrong',
  },
  'epoch-ahead': {
    about: 'quorum',
    meaning:
      'a server has seen a later epoch than the leader: its directory is of another ensemble, or the others were restored from older copies',
    advice:
      'if this server is the wrong one: stop it, set version-2 aside and start it; the leader sends it everything',
  },
  'quorum-tls-differs': {
    about: 'quorum',
    meaning: 'one server speaks TLS to the others, and another does not',
    advice: 'set sslQuorum alike on all; with portUnification=true while they are changed one after the other',
  },
  'quorum-login-refused': {
    about: 'quorum',
    meaning: 'a server refuses the SASL login of another one',
    advice: 'compare the sections QuorumServer and QuorumLearner of the JAAS files of both',
  },
};

type StartFault =
  | 'configuration-refused'
  | 'myid-missing'
  | 'myid-not-listed'
  | 'client-port-taken'
  | 'data-directory-unusable'
  | 'log-damaged'
  | 'snapshot-missing';

const START: Readonly<Record<StartFault, FaultEntry>> = {
  'configuration-refused': {
    about: 'start',
    meaning: 'the configuration cannot be used',
    advice: 'correct the line that is named',
  },
  'myid-missing': {
    about: 'start',
    meaning: 'a member has no file myid, or it holds no number',
    advice: 'write the number of its line server.N into myid in its data directory',
  },
  'myid-not-listed': {
    about: 'start',
    meaning: 'the number in myid has no line server.N',
    advice: 'correct the number, or add the line on all servers',
  },
  'client-port-taken': {
    about: 'start',
    meaning: 'another process listens at the client port',
    advice: 'stop it, or set another clientPort',
  },
  'data-directory-unusable': {
    about: 'start',
    meaning: 'the data directory cannot be read or written',
    advice: 'look at its path, owner and rights, and whether another server has it',
  },
  'log-damaged': {
    about: 'start',
    meaning: 'a log or snapshot is damaged, or does not fit the others',
    advice:
      'in an ensemble: set version-2 of this server aside, and let it get everything from the leader; alone: restore a backup',
  },
  'snapshot-missing': {
    about: 'start',
    meaning: 'there are logs and no snapshot that they continue',
    advice:
      'put the snapshot back; after an upgrade from 3.4 that never wrote one, start once with snapshot.trust.empty=true',
  },
};

type SlownessFault =
  | 'disk-full'
  | 'disk-slow'
  | 'requests-waiting'
  | 'server-slow'
  | 'server-behind'
  | 'server-stalled'
  | 'descriptors-short'
  | 'clocks-differ'
  | 'versions-differ';

const SLOWNESS: Readonly<Record<SlownessFault, FaultEntry>> = {
  'disk-full': {
    about: 'slowness',
    meaning: 'the disk of the data is full, or nearly',
    advice: 'make room: autopurge.purgeInterval removes old snapshots and logs; a server stops if it cannot log',
  },
  'disk-slow': {
    about: 'slowness',
    meaning: 'syncs of the log take long, and every write waits for one',
    advice: 'give dataLogDir a disk of its own; look for what else writes there (iostat -x 1)',
  },
  'requests-waiting': {
    about: 'slowness',
    meaning: 'many requests wait to be answered',
    advice: 'look at meerkat top, and for the client that asks so much at meerkat sessions',
  },
  'server-slow': {
    about: 'slowness',
    meaning: 'requests take long on the average',
    advice:
      'its disk first (fsynctime in mntr), then its processors and memory; srvr counts since the start, srst resets it',
  },
  'server-behind': {
    about: 'slowness',
    meaning: 'a server is far behind: its clients read old data',
    advice: 'look at its disk and at the network to the leader',
  },
  'server-stalled': {
    about: 'slowness',
    meaning: 'the process of a server stood still for a while',
    advice: 'look for swapping, a machine that was frozen or moved, and processors that others use up',
  },
  'descriptors-short': {
    about: 'slowness',
    meaning: 'a server has nearly as many open files as the system allows',
    advice: 'raise the limit (LimitNOFILE, ulimit -n), or set maxCnxns',
  },
  'clocks-differ': {
    about: 'slowness',
    meaning: 'clocks differ, so times of znodes, certificates and TTLs are wrong',
    advice: 'let chrony or ntpd run on all of them',
  },
  'versions-differ': {
    about: 'care',
    meaning: 'the servers are of different versions',
    advice: 'finish the upgrade: it is fine for its time only',
    isNote: true,
  },
};

type CareFault = 'voters-even' | 'purge-off';

const CARE: Readonly<Record<CareFault, FaultEntry>> = {
  'voters-even': {
    about: 'care',
    meaning: 'the number of voters is even: it bears no more failures than one fewer',
    advice: 'add one or take one away, or make one an observer',
    isNote: true,
  },
  'purge-off': {
    about: 'care',
    meaning: 'old snapshots and logs are never removed',
    advice: 'set autopurge.purgeInterval, say to 1',
    isNote: true,
  },
};

type SessionFault =
  | 'session-expired-client-stalled'
  | 'session-expired-server-stalled'
  | 'session-expired-network'
  | 'session-expired-client-gone'
  | 'session-expired-silence'
  | 'session-closed'
  | 'session-not-found';

const SESSION: Readonly<Record<SessionFault, FaultEntry>> = {
  'session-expired-client-stalled': {
    about: 'session',
    meaning: 'the client stood still for longer than its session timeout',
    advice:
      'look at the client for garbage collection, a blocked event loop, a frozen machine; or ask for a longer timeout',
  },
  'session-expired-server-stalled': {
    about: 'session',
    meaning: 'a server stood still, and the client found no other one in time',
    advice: 'look at that server (see server-stalled, disk-slow); name all servers in the connect string of the client',
  },
  'session-expired-network': {
    about: 'session',
    meaning: 'client and server both ran, and could not reach each other',
    advice: 'look at the network between them; name all servers in the connect string of the client',
  },
  'session-expired-client-gone': {
    about: 'session',
    meaning: 'the connection ended and the client did not return: it crashed, or left without close()',
    advice: 'look whether the process ended; one that ends on purpose should close its session',
  },
  'session-expired-silence': {
    about: 'session',
    meaning: 'the connection stayed and was silent: the client stood still, or packets were lost',
    advice: 'give doctor the log of the client with --client-log to tell these apart',
  },
  'session-closed': {
    about: 'session',
    meaning: 'the client closed the session',
    advice: 'look in the program for who closes it',
    isNote: true,
  },
  'session-not-found': {
    about: 'session',
    meaning: 'the logs do not name the session',
    advice: 'give the logs of all servers, of the time when it ended; the leader says who has expired',
  },
};

type LockFault = 'lock-held' | 'lock-holder-away' | 'lock-not-ephemeral' | 'lock-free' | 'lock-path-missing';

const LOCK: Readonly<Record<LockFault, FaultEntry>> = {
  'lock-held': {
    about: 'lock',
    meaning: 'a client that is connected holds it',
    advice: 'look at what that client does; the lock can only be taken away by ending its session',
  },
  'lock-holder-away': {
    about: 'lock',
    meaning: 'the holder is connected to no server that was asked: its lock ends with its session timeout',
    advice: 'wait for the session timeout; name all servers with --server, so that none is overlooked',
  },
  'lock-not-ephemeral': {
    about: 'lock',
    meaning: 'the first znode in the line belongs to no session, so it never goes away by itself',
    advice: 'find out who created it; if it protects no running work, delete it',
  },
  'lock-free': {
    about: 'lock',
    meaning: 'there are no contenders',
    advice: 'compare the path with that of the program, its chroot included',
    isNote: true,
  },
  'lock-path-missing': {
    about: 'lock',
    meaning: 'there is no such znode',
    advice: 'compare the path with that of the program, its chroot included',
  },
};

export const FAULTS: Readonly<Record<FaultName, FaultEntry>> = {
  ...CONNECTING,
  ...QUORUM,
  ...START,
  ...SLOWNESS,
  ...SESSION,
  ...LOCK,
  ...CARE,
};

export type FaultName =
  | ConnectingFault
  | QuorumFault
  | StartFault
  | SlownessFault
  | CareFault
  | SessionFault
  | LockFault;

/** One fault, where it was found. */
export interface Finding {
  readonly fault: FaultName;
  /** A server, a file, a session or a znode. */
  readonly where: string;
  /** What was seen, with its figures. */
  readonly found: string;
}

export function isNote({ fault }: Finding): boolean {
  return FAULTS[fault].isNote === true;
}
