import type { ServerRole } from '@meerkat/protocol';
import { accepted, type Key, later, supported } from './key.ts';
import * as kinds from './kinds.ts';

const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });
const ticks = kinds.integer({ min: 0, unit: 'ticks' });

/** The keys of a server that is one of several. The lists of members are read by `ensemble.ts`. */
export const ENSEMBLE_KEYS: readonly Key[] = [
  supported(
    'server.*',
    kinds.text('host:quorumPort:electionPort[:participant|:observer][;[address:]clientPort]'),
    '',
    'A member; its number is the `myid` of that server. One line alone is a server on its own',
    () => {},
  ),
  supported(
    'group.*',
    kinds.text('ids with : between them'),
    '',
    'A group of voters: a quorum has a majority of the weights in a majority of the groups',
    () => {},
  ),
  supported('weight.*', nonNegative, '1', 'Weight of a voter in its group; 0 lets it never decide', () => {}),
  supported(
    'dynamicConfigFile',
    kinds.text('the path of a file'),
    '',
    'File that lists the members in place of this one; with `reconfigEnabled`, each change writes another one and names it here',
    (draft, value) => {
      draft.dynamicConfigFile = value;
    },
  ),
  supported(
    'standaloneEnabled',
    kinds.boolean,
    'true',
    'With false a single member is an ensemble of one, which observers may join',
    (draft, value) => {
      draft.standaloneEnabled = value;
    },
  ),
  supported(
    'initLimit',
    ticks,
    '',
    'Ticks that a server may take to connect to its leader and to catch up; required in an ensemble',
    (draft, value) => {
      draft.initLimit = value;
    },
  ),
  supported(
    'syncLimit',
    ticks,
    '',
    'Ticks of silence after which a server and its leader give each other up; required in an ensemble',
    (draft, value) => {
      draft.syncLimit = value;
    },
  ),
  supported(
    'leaseLimit',
    ticks,
    '2',
    'Ticks for which a server answers its clients after its leader, or a leader after a quorum, has confirmed it; 0 for no limit, as Apache. The same at all servers, see [leases](leases.md)',
    (draft, value) => {
      draft.ensemble.leaseTicks = value;
    },
  ),
  supported(
    'peerType',
    kinds.oneOf('participant', 'observer'),
    'participant',
    'Role of this server; where the list of members says otherwise the list counts, with a warning',
    (draft, value) => {
      draft.peerType = value as ServerRole;
    },
  ),
  supported(
    'quorumListenOnAllIPs',
    kinds.boolean,
    'false',
    'Listen for other servers on every address of the machine, not only on the one in the list',
    (draft, value) => {
      draft.server.quorumListensOnAllIps = value;
      draft.ensemble.listensOnAllIps = value;
    },
  ),
  supported(
    'cnxTimeout',
    kinds.integer({ min: 1, unit: 'ms' }),
    '5000',
    'Time to connect to another server for an election',
    (draft, value) => {
      draft.ensemble.electionConnectTimeoutMs = value;
    },
  ),
  supported(
    'commitLogCount',
    nonNegative,
    '500',
    'Txns that are kept in memory for servers that are a little behind; at least 500',
    (draft, value) => {
      if (value < COMMIT_LOG_MIN) draft.notes.push(`${value} is too small; ${COMMIT_LOG_MIN} is used`);
      draft.ensemble.commitLogCount = Math.max(value, COMMIT_LOG_MIN);
    },
  ),
  supported(
    'snapshotSizeFactor',
    kinds.decimal,
    '0.33',
    'Part of the size of a snapshot that may be sent as txns instead; below 0 = none',
    (draft, value) => {
      draft.ensemble.snapshotSizeFactor = value > 1 ? 0.33 : value;
    },
  ),
  supported(
    'syncEnabled',
    kinds.boolean,
    'true',
    'An observer writes its log; with false it keeps in memory what it is told',
    (draft, value) => {
      draft.ensemble.syncEnabled = value;
    },
  ),
  supported('observer.syncEnabled', kinds.boolean, 'true', 'The same', (draft, value) => {
    draft.ensemble.syncEnabled = value;
  }),
  supported(
    'multiAddress.enabled',
    kinds.boolean,
    'false',
    'A server may have several addresses, `host:2888:3888|host2:2889:3889`; the same at all servers',
    (draft, value) => {
      draft.multiAddressEnabled = value;
    },
  ),
  supported(
    'multiAddress.reachabilityCheckEnabled',
    kinds.boolean,
    'true',
    'One of several addresses that answers nothing is given up after `reachabilityCheckTimeoutMs`; with false, after `cnxTimeout`',
    (draft, value) => {
      draft.reachabilityCheckEnabled = value;
    },
  ),
  supported(
    'multiAddress.reachabilityCheckTimeoutMs',
    kinds.integer({ min: 1, unit: 'ms' }),
    '1000',
    'Time that one of several addresses may take to answer',
    (draft, value) => {
      draft.ensemble.addressTimeoutMs = value;
    },
  ),
  supported(
    'observerMasterPort',
    kinds.integer({ min: 0, max: 65_535 }),
    '0',
    'The port at which followers take observers, so that these do not hang on the leader; 0 = none. The same at all servers; see [observer masters](modes.md#observer-masters)',
    (draft, value) => {
      draft.ensemble.observerMasterPort = value;
    },
  ),
  supported(
    'leaderServes',
    kinds.yesOrNo,
    'yes',
    'With no, a leader takes no clients: they use the other servers, and it has more time for these',
    (draft, value) => {
      draft.ensemble.leaderServes = value;
    },
  ),
  supported(
    'localSessionsEnabled',
    kinds.boolean,
    'false',
    'New sessions are known to their server alone and cost no txn; see [local sessions](modes.md#local-sessions). The same at all servers',
    (draft, value) => {
      draft.ensemble.localSessionsEnabled = value;
    },
  ),
  supported(
    'localSessionsUpgradingEnabled',
    kinds.boolean,
    'false',
    'Such a session becomes one of the ensemble when it has its first ephemeral; otherwise that is refused',
    (draft, value) => {
      draft.ensemble.localSessionsUpgradingEnabled = value;
    },
  ),
  accepted('electionAlg', kinds.oneOf('3'), '3', 'Algorithm of elections; there is one'),
  accepted('connectToLearnerMasterLimit', nonNegative, '0', 'Ticks to connect to the leader; initLimit counts'),
  accepted('quorumCnxnTimeoutMs', kinds.integer({ min: -1 }), '-1', 'Whoever dials says who it is within cnxTimeout'),
  accepted('electionPortBindRetry', nonNegative, '3', 'A port that is taken is tried again for ever'),
  accepted('fastleader.*', kinds.anything, '', 'Waiting times of elections; this server finds its own'),
  accepted('leader.*', kinds.anything, '', "Tuning of Apache's server"),
  accepted('learner.*', kinds.anything, '', "Tuning of Apache's server"),
  accepted('observer.*', kinds.anything, '', 'Pauses of observers; this server finds its own'),
  accepted('observerMaster.*', kinds.anything, '', 'What is kept for observers; this server keeps commitLogCount txns'),
  accepted('quorum.cnxn.threads.size', positive, '20', 'There are no such threads'),
  supported(
    'reconfigEnabled',
    kinds.boolean,
    'false',
    'Members come, go and change while the ensemble runs; the same at all its servers',
    (draft, value) => {
      draft.core.reconfigEnabled = value;
    },
  ),
  later(
    'oraclePath',
    [],
    'Ensembles of two with an arbiter outside, who has to be right: an ensemble needs a quorum here',
  ),
];

/** Apache's server raises less, too. */
const COMMIT_LOG_MIN = 500;
