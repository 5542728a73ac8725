import type { PeerCertificate } from '@meerkat/core';
import { DerTag, type DerValue, formatObjectIdentifier, readDer, readDerValues } from '@meerkat/protocol/der';
import { formatDistinguishedName } from './distinguished-name.ts';

/**
 * Who a certificate says that its owner is. Node.js tells the subject too, but in another order, under other names and
 * without the escapes, so that two subjects may look alike.
 *
 *     Certificate := SEQUENCE { TBSCertificate, … }
 *     TBSCertificate := SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject, key, …, [3] extensions? }
 *
 * @throws DerError
 */
export function readPeerCertificate({ raw }: { readonly raw: Uint8Array }): PeerCertificate {
  const [body] = readDerValues(readDer(raw, DerTag.sequence).contents);
  const fields = body === undefined ? [] : readDerValues(body.contents);
  if (fields[0]?.tag === VERSION) fields.shift();
  const subject = fields[SUBJECT];
  const extensions = fields.find(({ tag }) => tag === EXTENSIONS);
  return {
    subject: subject === undefined ? '' : formatDistinguishedName(subject.bytes),
    alternativeNames: extensions === undefined ? [] : readAlternativeNames(extensions),
  };
}

const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
/** Behind serial, algorithm, issuer and validity. */
const SUBJECT = 4;
const SUBJECT_ALT_NAME = '2.5.29.17';
/** The kinds of names that a certificate contains as plain text. */
const NAME_KINDS: Readonly<Record<number, string>> = { 129: 'email', 130: 'DNS', 134: 'URI' };
const IP_ADDRESS = 0x87;

/** `DNS:a.example`, `URI:spiffe://example/a`, `email:a@example`, `IP:10.0.0.1`, in the order of the certificate. */
function readAlternativeNames(extensions: DerValue): string[] {
  const list = readDerValues(readDer(extensions.contents, DerTag.sequence).contents);
  const found = list
    .map(({ contents }) => readDerValues(contents))
    .find(([type]) => type !== undefined && formatObjectIdentifier(type) === SUBJECT_ALT_NAME);
  const octets = found?.at(-1);
  if (octets === undefined) return [];
  return readDerValues(readDer(octets.contents, DerTag.sequence).contents).flatMap(({ tag, contents }) => {
    if (tag === IP_ADDRESS) return contents.length === 4 ? [`IP:${contents.join('.')}`] : [];
    const kind = NAME_KINDS[tag];
    return kind === undefined ? [] : [`${kind}:${Buffer.from(contents).toString('latin1')}`];
  });
}
