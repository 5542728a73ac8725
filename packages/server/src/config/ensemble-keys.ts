import type { ServerRole } from '@meerkat/protocol';
import { accepted, type Key, supported } from './key.ts';
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
    'A member; the number is its `myid`',
    () => {},
  ),
  supported(
    'group.*',
    kinds.text('ids with : between them'),
    '',
    'A group of voters: a quorum is a majority of weights in a majority of groups',
    () => {},
  ),
  supported('weight.*', nonNegative, '1', 'Weight of a voter in its group; 0 never decides', () => {}),
  supported(
    'dynamicConfigFile',
    kinds.text('the path of a file'),
    '',
    'File that lists the members instead',
    (draft, value) => {
      draft.dynamicConfigFile = value;
    },
  ),
  supported(
    'standaloneEnabled',
    kinds.boolean,
    'true',
    'With false one member is an ensemble, which observers may join',
    (draft, value) => {
      draft.standaloneEnabled = value;
    },
  ),
  supported('initLimit', ticks, '', 'Time to connect to the leader and catch up; required', (draft, value) => {
    draft.initLimit = value;
  }),
  supported(
    'syncLimit',
    ticks,
    '',
    'Silence after which server and leader give each other up; required',
    (draft, value) => {
      draft.syncLimit = value;
    },
  ),
  supported(
    'leaseLimit',
    ticks,
    '2',
    '[Lease](leases.md): how long a server answers without news of a quorum; 0 = no limit, as Apache. Same on all servers',
    (draft, value) => {
      draft.ensemble.leaseTicks = value;
    },
  ),
  supported(
    'peerType',
    kinds.oneOf('participant', 'observer'),
    'participant',
    'Role; the list of members counts more, with a warning',
    (draft, value) => {
      draft.peerType = value as ServerRole;
    },
  ),
  supported('quorumListenOnAllIPs', kinds.boolean, 'false', 'Listen for servers on every address', (draft, value) => {
    draft.server.quorumListensOnAllIps = value;
    draft.ensemble.listensOnAllIps = value;
  }),
  supported(
    'cnxTimeout',
    kinds.integer({ min: 1, unit: 'ms' }),
    '5000',
    'Time to connect for an election',
    (draft, value) => {
      draft.ensemble.electionConnectTimeoutMs = value;
    },
  ),
  supported(
    'commitLogCount',
    nonNegative,
    '500',
    'Txns in memory for servers a little behind; at least 500',
    (draft, value) => {
      if (value < COMMIT_LOG_MIN) draft.notes.push(`${value} is too small; ${COMMIT_LOG_MIN} is used`);
      draft.ensemble.commitLogCount = Math.max(value, COMMIT_LOG_MIN);
    },
  ),
  supported(
    'snapshotSizeFactor',
    kinds.decimal,
    '0.33',
    "Part of a snapshot's size that may be sent as txns instead; below 0 = none, above 1 = 0.33",
    (draft, value) => {
      draft.ensemble.snapshotSizeFactor = value > 1 ? 0.33 : value;
    },
  ),
  supported(
    'syncEnabled',
    kinds.boolean,
    'true',
    'An observer writes its log; with false it keeps all in memory',
    (draft, value) => {
      draft.ensemble.syncEnabled = value;
    },
  ),
  supported(
    'observer.syncEnabled',
    kinds.boolean,
    'true',
    'An observer writes its log; with false it keeps all in memory',
    (draft, value) => {
      draft.ensemble.syncEnabled = value;
    },
  ),
  supported(
    'multiAddress.enabled',
    kinds.boolean,
    'false',
    'Several addresses, `host:2888:3888|host2:2889:3889`. Same on all servers',
    (draft, value) => {
      draft.multiAddressEnabled = value;
    },
  ),
  supported(
    'multiAddress.reachabilityCheckEnabled',
    kinds.boolean,
    'true',
    'Drop a silent address after `…TimeoutMs`; with false after `cnxTimeout`',
    (draft, value) => {
      draft.reachabilityCheckEnabled = value;
    },
  ),
  supported(
    'multiAddress.reachabilityCheckTimeoutMs',
    kinds.integer({ min: 1, unit: 'ms' }),
    '1000',
    'Time that an address may take to answer',
    (draft, value) => {
      draft.ensemble.addressTimeoutMs = value;
    },
  ),
  supported(
    'observerMasterPort',
    kinds.integer({ min: 0, max: 65_535 }),
    '0',
    'Port at which followers take [observers](modes.md#observer-masters); 0 = none. Same on all servers',
    (draft, value) => {
      draft.ensemble.observerMasterPort = value;
    },
  ),
  supported('leaderServes', kinds.yesOrNo, 'yes', 'With `no` a leader takes no clients', (draft, value) => {
    draft.ensemble.leaderServes = value;
  }),
  supported(
    'localSessionsEnabled',
    kinds.boolean,
    'false',
    '[Local sessions](modes.md#local-sessions), which cost no txn. Same on all servers',
    (draft, value) => {
      draft.ensemble.localSessionsEnabled = value;
    },
  ),
  supported(
    'localSessionsUpgradingEnabled',
    kinds.boolean,
    'false',
    'The first ephemeral makes a local session global; with false it is refused',
    (draft, value) => {
      draft.ensemble.localSessionsUpgradingEnabled = value;
    },
  ),
  accepted('electionAlg', kinds.oneOf('3'), '3', 'There is one algorithm of elections'),
  accepted('connectToLearnerMasterLimit', nonNegative, '0', '`initLimit` counts'),
  accepted('quorumCnxnTimeoutMs', kinds.integer({ min: -1 }), '-1', '`cnxTimeout` counts'),
  accepted('electionPortBindRetry', nonNegative, '3', 'A port in use is retried without limit'),
  accepted('fastleader.*', kinds.anything, '', 'Pauses: this server finds its own'),
  accepted('leader.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('learner.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('observer.*', kinds.anything, '', 'Pauses: this server finds its own'),
  accepted('observerMaster.*', kinds.anything, '', '`commitLogCount` counts'),
  accepted('quorum.cnxn.threads.size', positive, '20', "Apache's threads, queues and caches"),
  supported(
    'reconfigEnabled',
    kinds.boolean,
    'false',
    '[Change members](membership.md) while the ensemble runs. Same on all servers',
    (draft, value) => {
      draft.core.reconfigEnabled = value;
    },
  ),
  accepted(
    'oraclePath',
    kinds.text('the path of a file'),
    '',
    'Lets one of two participants lead alone, and so without what the other has acknowledged: with two it stops the start',
    (draft, value) => {
      draft.oraclePath = value;
    },
  ),
];

/** Apache's server raises less, too. */
const COMMIT_LOG_MIN = 500;
