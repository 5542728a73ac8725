import { randomBytes } from 'node:crypto';
import type { SaslInitiator, SaslStep } from '@meerkat/core';
import { computeDigestProofs, NONCE_COUNT, QOP } from './digest-md5-hash.ts';
import { parseDirectives, quote } from './directives.ts';

/** As whom this server logs in at others. What prints this object shows no password. */
export class QuorumLogin {
  readonly username: string;
  readonly #password: string;

  constructor(username: string, password: string) {
    this.username = username;
    this.#password = password;
  }

  get password(): string {
    return this.#password;
  }
}

/** The half of a DIGEST-MD5 exchange (RFC 2831) that begins it, between servers. */
export class DigestMd5Client implements SaslInitiator {
  readonly #credentials: QuorumLogin;
  readonly #digestUri: string;
  readonly #cnonce: string;
  /** The proof that is expected of the other end; null before its challenge. */
  #expected: string | null = null;

  /** @param cnonce new for each exchange */
  constructor(credentials: QuorumLogin, digestUri: string, cnonce: string = randomBytes(16).toString('base64')) {
    this.#credentials = credentials;
    this.#digestUri = digestUri;
    this.#cnonce = cnonce;
  }

  start(): Uint8Array {
    return new Uint8Array(0);
  }

  step(token: Uint8Array): SaslStep {
    const directives = parseDirectives(token);
    if (directives === null) return failure('its token is no list of directives');
    if (this.#expected !== null) {
      const proof = directives.get('rspauth')?.toString('latin1');
      return proof === this.#expected
        ? { kind: 'success', token: null, identities: [] }
        : failure('it does not prove that it knows the password');
    }
    const nonce = directives.get('nonce');
    const realm = directives.get('realm')?.toString('utf8') ?? '';
    if (nonce === undefined) return failure('its challenge has no nonce');
    const { username, password } = this.#credentials;
    const proofs = computeDigestProofs({
      username,
      realm,
      password,
      nonce,
      cnonce: Buffer.from(this.#cnonce),
      authzid: null,
      digestUri: this.#digestUri,
    });
    this.#expected = proofs.server;
    const answer = [
      'charset=utf-8',
      `username=${quote(username)}`,
      `realm=${quote(realm)}`,
      `nonce=${quote(nonce.toString('latin1'))}`,
      `nc=${NONCE_COUNT}`,
      `cnonce=${quote(this.#cnonce)}`,
      `digest-uri=${quote(this.#digestUri)}`,
      'maxbuf=65536',
      `response=${proofs.client}`,
      `qop=${QOP}`,
    ];
    return { kind: 'challenge', token: Buffer.from(answer.join(',')) };
  }
}

function failure(reason: string): SaslStep {
  return { kind: 'failure', reason };
}
