/** What people and supervisors send to a command that is to do something. */
const PASSED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/**
 * From now on these signals are for `take` alone: what the process does with them otherwise, it does again afterwards.
 *
 * While a command runs under a lock, the first Ctrl-C must not end us before the command has ended, nor the second one
 * leave it behind.
 */
export function takeSignals(take: (name: NodeJS.Signals) => void): Disposable {
  const others = PASSED.map((name) => ({ name, listeners: process.listeners(name) as NodeJS.SignalsListener[] }));
  for (const { name, listeners } of others) {
    process.on(name, take);
    for (const listener of listeners) process.off(name, listener);
  }
  return {
    [Symbol.dispose]() {
      for (const { name, listeners } of others) {
        for (const listener of listeners) process.on(name, listener);
        process.off(name, take);
      }
    },
  };
}
