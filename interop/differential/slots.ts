/** How many sessions the script has at a time. */
export const SLOTS = 4;
/**
 * A further session that is the super user. It shows the comparison what guards a znode, and changes znodes that no other session
 * else may change any more. It has no watches.
 */
export const ORACLE_SLOT = SLOTS;
