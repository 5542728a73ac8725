// The workloads. Each worker (meerkat.mjs, kazoo_worker.py, CuratorWorker.java) implements the same kinds.

const HAND_OVER = { one: 'hand-over', many: 'hand-overs' };
const ITEM = { one: 'item', many: 'items' };

/**
 * Each of the `participants` has its own session. Few before many: sessions stay open and keep sending pings.
 *
 * Queues: half of them put and half take. The queue without leases has one of each, because a kazoo consumer that loses
 * the race for an item doubles its sleep each time: with four, all but one would be asleep.
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
