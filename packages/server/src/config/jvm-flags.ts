import { findKey } from './keys.ts';
import type { Property } from './properties.ts';

/** Environment variables in which start scripts of ZooKeeper and of its packagings pass flags to Java, in this order. */
export const JVM_FLAG_VARIABLES = ['SERVER_JVMFLAGS', 'JVMFLAGS', 'KAFKA_OPTS'] as const;

const OWN_PREFIX = 'zookeeper.';
/**
 * What Apache's server takes without that. Libraries have properties of their own: `-Dserver.port=…` is no line `server.port`
 * of zoo.cfg.
 */
const UNPREFIXED = /^(?:(?:java|jute|sun|znode\.container)\..*|readonlymode\.enabled|fsync\.warningthresholdms)$/;

/**
 * The system properties among Java's flags (`-Dzookeeper.ssl.clientAuth=want`), as lines of zoo.cfg would say them. Words are
 * divided at blanks; there are no quotes, as in zkServer.sh. Flags of Java itself, such as `-Xmx1g`, are skipped.
 */
export function readJvmFlags(environment: Readonly<Record<string, string | undefined>>): Property[] {
  const properties: Property[] = [];
  for (const variable of JVM_FLAG_VARIABLES) {
    for (const word of (environment[variable] ?? '').split(/\s+/)) {
      const flag = /^-D([^=]+)(?:=(.*))?$/.exec(word);
      if (flag === null) continue;
      const [, key = '', value = ''] = flag;
      const isTaken = key.startsWith(OWN_PREFIX) || (UNPREFIXED.test(key) && findKey(key) !== null);
      if (!isTaken) continue;
      properties.push({ key, value, line: null, origin: variable });
    }
  }
  return properties;
}
