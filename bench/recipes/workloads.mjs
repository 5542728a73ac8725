// What the libraries are made to do. A worker knows the kinds: meerkat.mjs, kazoo_worker.py and CuratorWorker.java have the same.

const HAND_OVER = { one: 'hand-over', many: 'hand-overs' };
const ITEM = { one: 'item', many: 'items' };

/**
 * `participants` have a session each. Few before many: sessions that are there stay, and send pings from then on.
 *
 * Of queues, half of them put and half of them take. The queue without leases has one of each, because a consumer of
 * kazoo's that finds its item taken by another sleeps for twice as long each time, and with four all but one are asleep.
 */
export const RECIPE_WORKLOADS = [
  { title: 'lock, 2 contenders', kind: 'lock', participants: 2, cycle: HAND_OVER },
  { title: 'queue', kind: 'queue', participants: 2, cycle: ITEM },
  { title: 'queue with leases', kind: 'queue-leases', participants: 8, cycle: ITEM },
  { title: 'double barrier, 10 members', kind: 'barrier', participants: 10, cycle: { one: 'round', many: 'rounds' } },
  { title: 'election, 10 candidates', kind: 'election', participants: 10, cycle: HAND_OVER },
  { title: 'lock, 50 contenders', kind: 'lock', participants: 50, cycle: HAND_OVER },
  { title: 'lock, 500 contenders', kind: 'lock', participants: 500, cycle: HAND_OVER },
];
