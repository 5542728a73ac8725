import { DerTag, type DerValue, formatObjectIdentifier, readDer, readDerValues } from '@meerkat/protocol/der';

/** The attributes that have a name in such a text; all others are written with their numbers. */
const ATTRIBUTE_NAMES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
};
/** PrintableString, T61String, IA5String, GeneralString, BMPString, UTF8String: the text of all is read as UTF-8, as Java does. */
const TEXT_TAGS: ReadonlySet<number> = new Set([0x13, 0x14, 0x16, 0x1b, 0x1e, DerTag.utf8String]);
const ESCAPED = /[,=+<>#;"\\]/g;

/**
 * A name as Java's `X500Principal.getName()` writes it, which is what ZooKeeper's ACLs of the scheme x509 hold: RFC 2253,
 * the last part first.
 *
 *     Name := SEQUENCE OF SET OF SEQUENCE { OBJECT IDENTIFIER, value }
 *
 * @param name DER of a Name
 * @throws DerError
 */
export function formatDistinguishedName(name: Uint8Array): string {
  const relativeNames = readDerValues(readDer(name, DerTag.sequence).contents);
  return relativeNames.reverse().map(formatRelativeName).join(',');
}

function formatRelativeName({ contents }: DerValue): string {
  return readDerValues(contents).map(formatAttribute).join('+');
}

function formatAttribute({ contents }: DerValue): string {
  const [type, value] = readDerValues(contents);
  if (type === undefined || value === undefined) return '';
  const oid = formatObjectIdentifier(type);
  const name = ATTRIBUTE_NAMES[oid];
  if (name === undefined || !TEXT_TAGS.has(value.tag)) {
    return `${name ?? oid}=#${Buffer.from(value.bytes).toString('hex')}`;
  }
  return `${name}=${escapeText(DECODER.decode(value.contents))}`;
}

function escapeText(text: string): string {
  const escaped = text.replace(ESCAPED, '\\$&').replaceAll('\0', '\\00');
  const outside = (blanks: string): string => blanks.replace(/[ \r]/g, '\\$&');
  const end = escaped.replace(/[ \r]+$/, '').length;
  const start = Math.min(escaped.length - escaped.replace(/^[ \r]+/, '').length, end);
  return outside(escaped.slice(0, start)) + escaped.slice(start, end) + outside(escaped.slice(end));
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
