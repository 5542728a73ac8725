/** What configuration says about TLS on one kind of port: `ssl.*` for clients, `ssl.quorum.*` between servers. */
export interface TlsOptions {
  /** Before the names of the keys, for messages: `ssl` or `ssl.quorum`. */
  readonly prefix: string;
  /** This server's key and certificates; null for none. */
  readonly keyStore: StoreLocation;
  /** The certificates of authorities that peers are checked against. */
  readonly trustStore: StoreLocation;
  /** File of certificate revocation lists; null for none. */
  readonly crlPath: string | null;
  /** Not empty. */
  readonly protocols: readonly TlsProtocol[];
  /** OpenSSL's names; null = those of Node.js. */
  readonly cipherSuites: readonly string[] | null;
  /** Whether peers that connect are asked for a certificate, and may connect without. */
  readonly clientAuth: ClientAuth;
  /** Whether the certificate of a peer has to name it: of one that is dialled, and of one that connects. */
  readonly verifiesHostNames: boolean;
  readonly verifiesClientHostNames: boolean;
  /** Whether the name service's answer to an address counts as a name. */
  readonly allowsReverseLookup: boolean;
  /** Milliseconds from the accept to the first byte, and from the beginning of the handshake to its end. */
  readonly handshakeTimeoutMs: number;
  /** Handshakes under way on a port, those included that have sent nothing yet. */
  readonly handshakesMax: number;
  /** Whether files are read again when they have changed. */
  readonly renews: boolean;
  /** Milliseconds between two looks at them. */
  readonly renewalPollMs: number;
}

export const TlsProtocol = { tls12: 'TLSv1.2', tls13: 'TLSv1.3' } as const;
export type TlsProtocol = (typeof TlsProtocol)[keyof typeof TlsProtocol];

export type ClientAuth = 'none' | 'want' | 'need';

export interface StoreLocation {
  /** Absolute; null = none. */
  readonly path: string | null;
  readonly password: string;
  /** File whose text is the password instead; null for none. */
  readonly passwordPath: string | null;
}

export const NO_STORE: StoreLocation = { path: null, password: '', passwordPath: null };

export const DEFAULT_TLS_OPTIONS: TlsOptions = {
  prefix: 'ssl',
  keyStore: NO_STORE,
  trustStore: NO_STORE,
  crlPath: null,
  protocols: [TlsProtocol.tls12, TlsProtocol.tls13],
  cipherSuites: null,
  clientAuth: 'need',
  verifiesHostNames: true,
  verifiesClientHostNames: false,
  allowsReverseLookup: false,
  handshakeTimeoutMs: 10_000,
  handshakesMax: 1024,
  renews: true,
  renewalPollMs: 2000,
};

export const DEFAULT_QUORUM_TLS_OPTIONS: TlsOptions = {
  ...DEFAULT_TLS_OPTIONS,
  prefix: 'ssl.quorum',
  verifiesClientHostNames: true,
  handshakeTimeoutMs: 5000,
  handshakesMax: 256,
};
