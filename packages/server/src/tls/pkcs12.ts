import { createPrivateKey, X509Certificate } from 'node:crypto';
import type forgeTypes from 'node-forge';
import { type StoreContents, StoreFault } from './store-contents.ts';

type Forge = typeof forgeTypes;
type Bag = forgeTypes.pkcs12.Bag;

/**
 * Reads a PKCS12 file. Node.js itself reads neither those without a key, which is what Java's trust stores are, nor those
 * encrypted with RC2, which Java 8 wrote: see docs/decisions/README.md.
 *
 * @throws StoreFault
 */
export async function readPkcs12(bytes: Uint8Array, password: string): Promise<StoreContents> {
  // Loading it takes longer than most servers that have no such file take to start.
  const { default: forge } = await import('node-forge');
  const bags = readBags(forge, bytes, password);
  const certificates = bags
    .filter(({ type }) => type === forge.pki.oids['certBag'])
    .map((bag) => new X509Certificate(derOf(forge, certificateOf(forge, bag))));
  const keys = bags
    .filter(({ type }) => type === forge.pki.oids['keyBag'] || type === forge.pki.oids['pkcs8ShroudedKeyBag'])
    .map((bag) => createPrivateKey({ key: derOf(forge, keyOf(forge, bag)), format: 'der', type: 'pkcs8' }));
  if (keys.length === 0) return { format: 'PKCS12', keys: [], trusted: certificates };
  return { format: 'PKCS12', keys: keys.map((key) => ({ key, certificates })), trusted: [] };
}

function readBags(forge: Forge, bytes: Uint8Array, password: string): Bag[] {
  let file: forgeTypes.asn1.Asn1;
  try {
    file = forge.asn1.fromDer(forge.util.createBuffer(Buffer.from(bytes).toString('latin1')));
  } catch (error) {
    throw new StoreFault('bytes that are neither PEM, PKCS12 nor JKS', 'one of these', error);
  }
  try {
    return forge.pkcs12.pkcs12FromAsn1(file, false, password).safeContents.flatMap(({ safeBags }) => safeBags);
  } catch (error) {
    if (/password|MAC/i.test(String(error))) {
      throw new StoreFault('a PKCS12 file that this password does not open', 'the right password', error);
    }
    throw new StoreFault('a PKCS12 file that cannot be decoded', 'a whole file, encrypted in a known way', error);
  }
}

/** Of keys and certificates of other kinds than RSA the library leaves the bytes as they are. */
function certificateOf(forge: Forge, { cert, asn1 }: Bag): forgeTypes.asn1.Asn1 {
  return cert === undefined || cert === null ? asn1 : forge.pki.certificateToAsn1(cert);
}

function keyOf(forge: Forge, { key, asn1 }: Bag): forgeTypes.asn1.Asn1 {
  if (key === undefined || key === null) return asn1;
  return forge.pki.wrapRsaPrivateKey(forge.pki.privateKeyToAsn1(key));
}

function derOf(forge: Forge, value: forgeTypes.asn1.Asn1): Buffer {
  return Buffer.from(forge.asn1.toDer(value).getBytes(), 'latin1');
}
