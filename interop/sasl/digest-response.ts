import { createHash } from 'node:crypto';

/** A user of a test. */
export interface User {
  readonly username: string;
  readonly password: string;
}

export interface Exchange extends User {
  readonly nonce: string;
  readonly authzid?: string;
  /** Used in the hash. */
  readonly digestUri?: string;
  readonly realm?: string;
}

const CNONCE = 'zfEP7rHDGKYCwNZ+DHhqq3jSWyC5a//qAK8t06da';

/** The directives of a response to a DIGEST-MD5 challenge of ZooKeeper, in the order of Java's client. Names are ASCII. */
export function digestResponse(exchange: Exchange): Map<string, string> {
  const { username, password, nonce, authzid, digestUri = 'zookeeper/zk-sasl-md5', realm = 'zk-sasl-md5' } = exchange;
  const md5 = (...parts: readonly (string | Buffer)[]): Buffer => {
    const hash = createHash('md5');
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  const a1 = md5(
    md5(`${username}:${realm}:${password}`),
    `:${nonce}:${CNONCE}${authzid === undefined ? '' : `:${authzid}`}`,
  ).toString('hex');
  const a2 = md5(`AUTHENTICATE:${digestUri}`).toString('hex');
  return new Map([
    ['charset', 'utf-8'],
    ['username', `"${username}"`],
    ['realm', `"${realm}"`],
    ['nonce', `"${nonce}"`],
    ['nc', '00000001'],
    ['cnonce', `"${CNONCE}"`],
    ['digest-uri', `"${digestUri}"`],
    ['maxbuf', '65536'],
    ['response', md5(`${a1}:${nonce}:00000001:${CNONCE}:auth:${a2}`).toString('hex')],
    ['qop', 'auth'],
    ...(authzid === undefined ? [] : ([['authzid', `"${authzid}"`]] as const)),
  ]);
}

export function format(directives: ReadonlyMap<string, string>): string {
  return [...directives].map(([name, value]) => `${name}=${value}`).join(',');
}
