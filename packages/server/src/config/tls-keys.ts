import {
  DEFAULT_QUORUM_TLS_OPTIONS,
  DEFAULT_TLS_OPTIONS,
  type StoreLocation,
  type TlsOptions,
} from '../tls/options.ts';
import type { Draft, TlsDraft } from './draft.ts';
import { accepted, type Key, supported } from './key.ts';
import * as kinds from './kinds.ts';
import { cipherSuites, clientAuth, isFalse, protocol, protocols, storeType } from './tls-kinds.ts';

const file = kinds.text('the path of a file', (value) => value !== '' && !value.includes('\0'));
const port = kinds.integer({ min: 0, max: 65535 });

/** The keys about TLS: for clients, and between servers. */
export const TLS_KEYS: readonly Key[] = [
  supported(
    'secureClientPort',
    port,
    '',
    'Port for clients that speak TLS, beside `clientPort` or instead of it; 0 takes any free port. See [security](security.md)',
    (draft, value) => {
      draft.secureClientPort = value;
    },
  ),
  supported(
    'secureClientPortAddress',
    kinds.host,
    '',
    'Name or address to listen on for them; every address of the machine if it is not given',
    (draft, value) => {
      draft.server.secureClientHost = value;
    },
  ),
  supported(
    'client.portUnification',
    kinds.boolean,
    'false',
    'Clients may speak TLS on `clientPort` too: the first byte decides',
    (draft, value) => {
      draft.server.clientPortUnification = value;
    },
  ),
  ...keysOf('ssl', (draft) => draft.tls, DEFAULT_TLS_OPTIONS),
  supported(
    'client.certReload',
    kinds.boolean,
    'true',
    'Read certificates, keys and trust stores again when their files have changed (Apache: false)',
    (draft, value) => {
      draft.tls.renews = value;
    },
  ),
  supported(
    'netty.server.outstandingHandshake.limit',
    kinds.integer({ min: -1 }),
    '-1',
    'TLS handshakes of clients under way, silent connections included; −1 is 1024 (Apache: unlimited)',
    (draft, value) => {
      if (value > 0) draft.tls.handshakesMax = value;
    },
  ),
  supported(
    'ssl.authProvider',
    kinds.oneOf('', 'x509'),
    'x509',
    'Who makes identities of certificates; there is one',
    () => {},
  ),
  supported(
    'X509AuthenticationProvider.superUser',
    kinds.text('the subject of a certificate, as CN=admin,O=Example'),
    '',
    'Clients that show a certificate of this subject are the super user, for whom no ACL counts',
    (draft, value) => {
      draft.auth.x509SuperUser = value;
    },
  ),
  supported(
    'X509AuthenticationProvider.subjectAltNames',
    kinds.boolean,
    'false',
    "The alternative names of a client's certificate are identities too: `x509:DNS:…`, `x509:URI:…`, `x509:email:…`. Meerkat only",
    (draft, value) => {
      draft.auth.x509AlternativeNames = value;
    },
  ),
  // ---- between servers
  supported(
    'sslQuorum',
    kinds.boolean,
    'false',
    'Connect to other servers with TLS and, without `portUnification`, take no other connections',
    (draft, value) => {
      draft.server.sslQuorum = value;
    },
  ),
  supported(
    'portUnification',
    kinds.boolean,
    'false',
    'Other servers may connect with TLS or without: for going over from one to the other',
    (draft, value) => {
      draft.server.quorumPortUnification = value;
    },
  ),
  ...keysOf('ssl.quorum', (draft) => draft.quorumTls, DEFAULT_QUORUM_TLS_OPTIONS),
  supported(
    'sslQuorumReloadCertFiles',
    kinds.boolean,
    'true',
    'As `client.certReload`, between servers (Apache: false)',
    (draft, value) => {
      draft.quorumTls.renews = value;
    },
  ),
  accepted('ssl.sslProvider', kinds.anything, '', 'TLS is that of Node.js, which is OpenSSL'),
  accepted('fips-mode', kinds.boolean, 'true', 'Host names are always checked as the keys of ssl say'),
];

/** The keys that both kinds of port have. */
function keysOf(prefix: string, draftOf: (draft: Draft) => TlsDraft, defaults: TlsOptions): readonly Key[] {
  return [
    ...contextKeys(prefix, draftOf),
    supported(
      `${prefix}.ocsp`,
      isFalse('OCSP is not asked here'),
      'false',
      'OCSP, which this server does not have',
      () => {},
    ),
    supported(
      `${prefix}.context.supplier.class`,
      kinds.oneOf(''),
      '',
      'A class of Java that supplies all of TLS; there is no Java here',
      () => {},
    ),
    supported(
      `${prefix}.protocol`,
      protocol,
      '',
      `The only version to speak, unless \`${prefix}.enabledProtocols\` lists some`,
      (draft, value) => {
        draftOf(draft).protocol = value === 'TLS' ? null : value;
      },
    ),
    supported(
      `${prefix}.clientAuth`,
      clientAuth,
      defaults.clientAuth,
      'Whether a peer that connects has to show a certificate: need, want (may) or none',
      (draft, value) => {
        draftOf(draft).clientAuth = value;
      },
    ),
    supported(
      `${prefix}.hostnameVerification`,
      kinds.boolean,
      String(defaults.verifiesHostNames),
      'Certificates have to name the server that is connected to',
      (draft, value) => {
        draftOf(draft).verifiesHostNames = value;
      },
    ),
    supported(
      `${prefix}.clientHostnameVerification`,
      kinds.boolean,
      String(defaults.verifiesClientHostNames),
      prefix === 'ssl'
        ? "A client's certificate has to name the address that it comes from"
        : 'The certificate of a server that connects has to name a member of the ensemble. Needs `hostnameVerification`',
      (draft, value) => {
        draftOf(draft).verifiesClientHostNames = value;
      },
    ),
    supported(
      `${prefix}.allowReverseDnsLookup`,
      kinds.boolean,
      'false',
      'The name that the name service has for an address counts as the name of the peer (Apache between servers: true)',
      (draft, value) => {
        draftOf(draft).allowsReverseLookup = value;
      },
    ),
    supported(
      `${prefix}.handshakeDetectionTimeoutMillis`,
      kinds.integer({ min: -1, unit: 'ms' }),
      String(defaults.handshakeTimeoutMs),
      'Time from the accept of a connection to the end of its TLS handshake',
      (draft, value) => {
        if (value > 0) draftOf(draft).handshakeTimeoutMs = value;
      },
    ),
  ];
}

/** Those that every port with TLS has: what it shows, whom it trusts, what it speaks. */
export function contextKeys(prefix: string, draftOf: (draft: Draft) => TlsDraft): readonly Key[] {
  return [
    ...storeKeys(`${prefix}.keyStore`, "this server's key and certificates", (draft) => draftOf(draft).keyStore),
    ...storeKeys(
      `${prefix}.trustStore`,
      'the authorities that peers are checked against',
      (draft) => draftOf(draft).trustStore,
    ),
    supported(
      `${prefix}.crl.location`,
      file,
      '',
      'File of certificate revocation lists, PEM or DER: one of each authority. Meerkat only',
      (draft, value) => {
        draftOf(draft).crlPath = value;
      },
    ),
    supported(
      `${prefix}.crl`,
      kinds.boolean,
      'false',
      `Check whether certificates are revoked; lists are not downloaded, so \`${prefix}.crl.location\` has to name them`,
      (draft, value) => {
        draftOf(draft).wantsCrl = value;
      },
    ),
    supported(
      `${prefix}.enabledProtocols`,
      protocols,
      'TLSv1.2,TLSv1.3',
      'Versions to speak; older ones are left out with a warning',
      (draft, { spoken, leftOut }) => {
        draftOf(draft).enabledProtocols = spoken;
        if (leftOut.length > 0) draft.notes.push(`lists ${leftOut.join(', ')}, which this server does not speak`);
      },
    ),
    supported(
      `${prefix}.ciphersuites`,
      cipherSuites,
      '',
      "Cipher suites, the preferred first, by Java's or OpenSSL's names; those of Node.js if it is not given",
      (draft, value) => {
        draftOf(draft).cipherSuites = value;
      },
    ),
  ];
}

type StoreDraft = { -readonly [Key in keyof StoreLocation]: StoreLocation[Key] };

function storeKeys(prefix: string, what: string, storeOf: (draft: Draft) => StoreDraft): readonly Key[] {
  return [
    supported(
      `${prefix}.location`,
      file,
      '',
      `File with ${what}: PEM, PKCS12 or JKS, told apart by its content`,
      (draft, value) => {
        storeOf(draft).path = value;
      },
    ),
    supported(`${prefix}.password`, kinds.anything, '', 'Its password', (draft, value) => {
      storeOf(draft).password = value;
    }),
    supported(
      `${prefix}.passwordPath`,
      file,
      '',
      'File with the password, which counts more; a line break at its end is cut',
      (draft, value) => {
        storeOf(draft).passwordPath = value;
      },
    ),
    supported(`${prefix}.type`, storeType, '', 'Checked only: the content of the file decides', () => {}),
  ];
}
