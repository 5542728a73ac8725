import { createHash } from 'node:crypto';

/** What both ends of a DIGEST-MD5 exchange hash. */
export interface DigestInput {
  readonly username: string;
  readonly realm: string;
  readonly password: string;
  readonly nonce: Uint8Array;
  readonly cnonce: Uint8Array;
  /** As sent; null when it was not. */
  readonly authzid: Uint8Array | null;
  /** As the client has spelled it. */
  readonly digestUri: string;
}

/** What proves that each end knows the password: 32 hexadecimal digits each. */
export interface DigestProofs {
  readonly client: string;
  readonly server: string;
}

/**
 * The proofs of both ends, RFC 2831 §2.1.2.1 and §2.1.3, for the quality of protection "auth" and the first use of the nonce:
 *
 *     A1    = MD5(user:realm:password) ":" nonce ":" cnonce [":" authzid]      the first part as 16 bytes
 *     proof = hex(MD5(hex(MD5(A1)) ":" nonce ":00000001:" cnonce ":auth:" hex(MD5(A2))))
 *     A2    = "AUTHENTICATE:" uri of the client, ":" uri of the server
 */
export function computeDigestProofs(input: DigestInput): DigestProofs {
  const { username, realm, password, nonce, cnonce, authzid, digestUri } = input;
  const user = md5(narrow(username), COLON, narrow(realm), COLON, narrow(password));
  const authorized = authzid === null ? [] : [COLON, authzid];
  const a1 = Buffer.from(md5(user, COLON, nonce, COLON, cnonce, ...authorized).toString('hex'));
  const prove = (a2: string): string => {
    const hashed = md5(Buffer.from(a2, 'utf8')).toString('hex');
    const tail = Buffer.from(`:${QOP}:${hashed}`);
    return md5(a1, COLON, nonce, Buffer.from(`:${NONCE_COUNT}:`), cnonce, tail).toString('hex');
  };
  return { client: prove(`AUTHENTICATE:${digestUri}`), server: prove(`:${digestUri}`) };
}

/** The one quality of protection that is offered: authentication alone. */
export const QOP = 'auth';
/** This nonce is used for the first time, and only once. */
export const NONCE_COUNT = '00000001';

/** A text in the hash: ISO 8859-1 if it can be written so, else UTF-8. */
function narrow(text: string): Buffer {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return Buffer.from(text, 'utf8');
  return Buffer.from(text, 'latin1');
}

function md5(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('md5');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const COLON = Buffer.from(':');
