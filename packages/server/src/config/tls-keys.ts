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
    'Port for clients with [TLS](security.md), beside or instead of `clientPort`; 0 takes a free one',
    (draft, value) => {
      draft.secureClientPort = value;
    },
  ),
  supported(
    'secureClientPortAddress',
    kinds.host,
    '',
    'Where to listen; every address if not given',
    (draft, value) => {
      draft.server.secureClientHost = value;
    },
  ),
  supported('client.portUnification', kinds.boolean, 'false', '`clientPort` takes TLS too', (draft, value) => {
    draft.server.clientPortUnification = value;
  }),
  ...keysOf('ssl', (draft) => draft.tls, DEFAULT_TLS_OPTIONS),
  supported(
    'client.certReload',
    kinds.boolean,
    'true',
    'Read changed certificates, keys, trust stores again (Apache: false)',
    (draft, value) => {
      draft.tls.renews = value;
    },
  ),
  supported(
    'netty.server.outstandingHandshake.limit',
    kinds.integer({ min: -1 }),
    '-1',
    'TLS handshakes of clients under way; −1 = 1024 (Apache: unlimited)',
    (draft, value) => {
      if (value > 0) draft.tls.handshakesMax = value;
    },
  ),
  supported('ssl.authProvider', kinds.oneOf('', 'x509'), 'x509', 'Who makes identities of certificates', () => {}),
  supported(
    'X509AuthenticationProvider.superUser',
    kinds.text('the subject of a certificate, as CN=admin,O=Example'),
    '',
    'Certificate of the super user, as `CN=admin,O=Example`: no ACL counts',
    (draft, value) => {
      draft.auth.x509SuperUser = value;
    },
  ),
  supported(
    'X509AuthenticationProvider.subjectAltNames',
    kinds.boolean,
    'false',
    'Alternative names are identities too: `x509:DNS:…`, `x509:URI:…`, `x509:email:…` (Meerkat)',
    (draft, value) => {
      draft.auth.x509AlternativeNames = value;
    },
  ),
  // ---- between servers
  supported(
    'sslQuorum',
    kinds.boolean,
    'false',
    'TLS between servers; without `portUnification` nothing else',
    (draft, value) => {
      draft.server.sslQuorum = value;
    },
  ),
  supported(
    'portUnification',
    kinds.boolean,
    'false',
    'Other servers may connect with TLS or without',
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
  accepted('ssl.sslProvider', kinds.anything, '', 'TLS is that of Node.js'),
  accepted('fips-mode', kinds.boolean, 'true', 'Host names are checked as the `ssl` keys say'),
];

/** The keys that both kinds of port have. */
function keysOf(prefix: string, draftOf: (draft: Draft) => TlsDraft, defaults: TlsOptions): readonly Key[] {
  return [
    ...contextKeys(prefix, draftOf),
    supported(`${prefix}.ocsp`, isFalse('OCSP is not asked here'), 'false', 'Not offered', () => {}),
    supported(`${prefix}.context.supplier.class`, kinds.oneOf(''), '', 'Not offered: there is no Java', () => {}),
    supported(
      `${prefix}.protocol`,
      protocol,
      '',
      `The only version, unless \`${prefix}.enabledProtocols\` is given`,
      (draft, value) => {
        draftOf(draft).protocol = value === 'TLS' ? null : value;
      },
    ),
    supported(
      `${prefix}.clientAuth`,
      clientAuth,
      defaults.clientAuth,
      'Whether who connects has to show a certificate; want: may',
      (draft, value) => {
        draftOf(draft).clientAuth = value;
      },
    ),
    supported(
      `${prefix}.hostnameVerification`,
      kinds.boolean,
      String(defaults.verifiesHostNames),
      'Certificates must name the server connected to',
      (draft, value) => {
        draftOf(draft).verifiesHostNames = value;
      },
    ),
    supported(
      `${prefix}.clientHostnameVerification`,
      kinds.boolean,
      String(defaults.verifiesClientHostNames),
      prefix === 'ssl'
        ? "A client's certificate must name its address"
        : 'The certificate of who connects must name a member. Needs `hostnameVerification`',
      (draft, value) => {
        draftOf(draft).verifiesClientHostNames = value;
      },
    ),
    supported(
      `${prefix}.allowReverseDnsLookup`,
      kinds.boolean,
      'false',
      "A peer's name may come from reverse DNS (Apache between servers: true)",
      (draft, value) => {
        draftOf(draft).allowsReverseLookup = value;
      },
    ),
    supported(
      `${prefix}.handshakeDetectionTimeoutMillis`,
      kinds.integer({ min: -1, unit: 'ms' }),
      String(defaults.handshakeTimeoutMs),
      prefix === 'ssl'
        ? 'Time to the first byte, and again for the handshake; 0 or less = the default'
        : 'The same between servers',
      (draft, value) => {
        if (value > 0) draftOf(draft).handshakeTimeoutMs = value;
      },
    ),
  ];
}

/** Those that every port with TLS has: what it shows, whom it trusts, what it speaks. */
export function contextKeys(prefix: string, draftOf: (draft: Draft) => TlsDraft): readonly Key[] {
  return [
    ...storeKeys(`${prefix}.keyStore`, "This server's key and certificates", (draft) => draftOf(draft).keyStore),
    ...storeKeys(`${prefix}.trustStore`, 'Authorities of peers', (draft) => draftOf(draft).trustStore),
    supported(
      `${prefix}.crl.location`,
      file,
      '',
      'Revocation lists, PEM or DER, one of each authority (Meerkat)',
      (draft, value) => {
        draftOf(draft).crlPath = value;
      },
    ),
    supported(
      `${prefix}.crl`,
      kinds.boolean,
      'false',
      `Check revocation; needs \`${prefix}.crl.location\`, nothing is downloaded`,
      (draft, value) => {
        draftOf(draft).wantsCrl = value;
      },
    ),
    supported(
      `${prefix}.enabledProtocols`,
      protocols,
      'TLSv1.2,TLSv1.3',
      'Older ones are left out with a warning',
      (draft, { spoken, leftOut }) => {
        draftOf(draft).enabledProtocols = spoken;
        if (leftOut.length > 0) draft.notes.push(`lists ${leftOut.join(', ')}, which this server does not speak`);
      },
    ),
    supported(
      `${prefix}.ciphersuites`,
      cipherSuites,
      '',
      "The preferred first, by Java's or OpenSSL's names; default those of Node.js",
      (draft, value) => {
        draftOf(draft).cipherSuites = value;
      },
    ),
  ];
}

type StoreDraft = { -readonly [Key in keyof StoreLocation]: StoreLocation[Key] };

function storeKeys(prefix: string, what: string, storeOf: (draft: Draft) => StoreDraft): readonly Key[] {
  return [
    supported(`${prefix}.location`, file, '', `${what}: PEM, PKCS12 or JKS, told apart by content`, (draft, value) => {
      storeOf(draft).path = value;
    }),
    supported(`${prefix}.password`, kinds.anything, '', 'Password of that store', (draft, value) => {
      storeOf(draft).password = value;
    }),
    supported(
      `${prefix}.passwordPath`,
      file,
      '',
      'The password in a file, counts more; a line break at its end is cut',
      (draft, value) => {
        storeOf(draft).passwordPath = value;
      },
    ),
    supported(`${prefix}.type`, storeType, '', 'Checked only: the content decides', () => {}),
  ];
}
