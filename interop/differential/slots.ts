/** Number of concurrent sessions of the script. */
export const SLOTS = 4;
/**
 * An additional session of the super user. It reads ACLs for the comparison, and changes znodes that no other session
 * may change. It has no watches.
 */
export const ORACLE_SLOT = SLOTS;
