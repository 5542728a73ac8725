import type { ConnectOptions, SaslExchange } from '@meerkat/client';
import type { PeerCertificate, SaslConversation, SaslStep } from '@meerkat/core';
import type { Identity } from './checkers/access.ts';

/**
 * Users of a simulated service. Their names are their secrets too: what is simulated is when they authenticate, not how.
 *
 *     digest   an auth packet on each connection; `ann:secret` proves `ann:secret`
 *     x509     the certificate of each connection: known before its first byte
 *     sasl     two tokens after the connect response, before anything else is sent
 */
export const SCHEMES = ['digest', 'x509', 'sasl'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** How a list of permissions names a user. */
export function idOf(scheme: Scheme, name: string): string {
  switch (scheme) {
    case 'digest':
      return `${name}:secret`;
    case 'x509':
      return `CN=${name}`;
    case 'sasl':
      return name;
  }
}

/** What a client with this identity sends. */
export function credentialsOf(identity: Identity): Pick<ConnectOptions, 'auth' | 'sasl'> {
  switch (identity?.scheme) {
    case 'digest':
      return { auth: [{ scheme: 'digest', auth: identity.id }] };
    case 'sasl':
      return { sasl: () => new NameExchange(identity.id) };
    default:
      return {};
  }
}

/** What a client with this identity shows when it connects. */
export function certificateOf(identity: Identity): PeerCertificate | null {
  return identity?.scheme === 'x509' ? { subject: identity.id, alternativeNames: [] } : null;
}

/** The client says its name when it is asked for. */
class NameExchange implements SaslExchange {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  start(): Uint8Array {
    return new Uint8Array(0);
  }

  respond(token: Uint8Array): Uint8Array | null {
    return new TextDecoder().decode(token) === QUESTION ? new TextEncoder().encode(this.#name) : null;
  }
}

/** The server asks for the name, and believes it. */
export class NameConversation implements SaslConversation {
  #isAsked = false;

  step(token: Uint8Array): SaslStep {
    if (!this.#isAsked) {
      this.#isAsked = true;
      return { kind: 'challenge', token: new TextEncoder().encode(QUESTION) };
    }
    const identities = [{ scheme: 'sasl', id: new TextDecoder().decode(token) }];
    return { kind: 'success', token: new TextEncoder().encode('welcome'), identities };
  }
}

const QUESTION = 'who are you?';
