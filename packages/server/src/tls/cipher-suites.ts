/** Names of cipher suites as Java has them (RFC 5246 and 8446), and as OpenSSL has those of TLS 1.2. */
const OPENSSL_NAMES: ReadonlyMap<string, string> = new Map(
  [
    ...['ECDSA', 'RSA'].flatMap((signature): [string, string][] => [
      [`ECDHE_${signature}_WITH_AES_128_GCM_SHA256`, `ECDHE-${signature}-AES128-GCM-SHA256`],
      [`ECDHE_${signature}_WITH_AES_256_GCM_SHA384`, `ECDHE-${signature}-AES256-GCM-SHA384`],
      [`ECDHE_${signature}_WITH_CHACHA20_POLY1305_SHA256`, `ECDHE-${signature}-CHACHA20-POLY1305`],
      [`ECDHE_${signature}_WITH_AES_128_CBC_SHA256`, `ECDHE-${signature}-AES128-SHA256`],
      [`ECDHE_${signature}_WITH_AES_256_CBC_SHA384`, `ECDHE-${signature}-AES256-SHA384`],
      [`ECDHE_${signature}_WITH_AES_128_CBC_SHA`, `ECDHE-${signature}-AES128-SHA`],
      [`ECDHE_${signature}_WITH_AES_256_CBC_SHA`, `ECDHE-${signature}-AES256-SHA`],
    ]),
    ['ECDHE_ECDSA_WITH_AES_128_CCM', 'ECDHE-ECDSA-AES128-CCM'],
    ['ECDHE_ECDSA_WITH_AES_256_CCM', 'ECDHE-ECDSA-AES256-CCM'],
    ['DHE_RSA_WITH_AES_128_GCM_SHA256', 'DHE-RSA-AES128-GCM-SHA256'],
    ['DHE_RSA_WITH_AES_256_GCM_SHA384', 'DHE-RSA-AES256-GCM-SHA384'],
    ['DHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'DHE-RSA-CHACHA20-POLY1305'],
    ['DHE_RSA_WITH_AES_128_CBC_SHA256', 'DHE-RSA-AES128-SHA256'],
    ['DHE_RSA_WITH_AES_256_CBC_SHA256', 'DHE-RSA-AES256-SHA256'],
    ['DHE_RSA_WITH_AES_128_CBC_SHA', 'DHE-RSA-AES128-SHA'],
    ['DHE_RSA_WITH_AES_256_CBC_SHA', 'DHE-RSA-AES256-SHA'],
    ['RSA_WITH_AES_128_GCM_SHA256', 'AES128-GCM-SHA256'],
    ['RSA_WITH_AES_256_GCM_SHA384', 'AES256-GCM-SHA384'],
    ['RSA_WITH_AES_128_CBC_SHA256', 'AES128-SHA256'],
    ['RSA_WITH_AES_256_CBC_SHA256', 'AES256-SHA256'],
    ['RSA_WITH_AES_128_CBC_SHA', 'AES128-SHA'],
    ['RSA_WITH_AES_256_CBC_SHA', 'AES256-SHA'],
  ].map(([java, openssl]): [string, string] => [`TLS_${java}`, openssl as string]),
);
const TLS_1_3 = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_CCM_SHA256',
];

/**
 * OpenSSL's name of a cipher suite, from Java's or from its own; those of TLS 1.3 have one name.
 *
 * @returns null when it is unknown or insecure: NULL, anonymous, export, RC4, DES
 */
export function findCipherSuite(name: string): string | null {
  if (TLS_1_3.includes(name)) return name;
  const known = OPENSSL_NAMES.get(name.replace(/^SSL_/, 'TLS_'));
  if (known !== undefined) return known;
  return [...OPENSSL_NAMES.values()].includes(name) ? name : null;
}
