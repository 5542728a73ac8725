import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type StoreContents, StoreFault } from './store-contents.ts';

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;
const CERTIFICATE = /^(X509 |TRUSTED )?CERTIFICATE$/;

/**
 * Reads a file of PEM blocks, in any order; the text between them does not count. A key belongs to all certificates of the
 * file.
 *
 * Apache's server takes keys in PKCS#8 only, and of encrypted ones only the old kinds; these are all that OpenSSL reads.
 *
 * @throws StoreFault
 */
export function readPem(text: string, password: string): StoreContents {
  const certificates: X509Certificate[] = [];
  const keys: KeyObject[] = [];
  for (const [block, label = ''] of text.matchAll(BLOCK)) {
    if (CERTIFICATE.test(label)) certificates.push(readCertificate(block, certificates.length + 1));
    else if (label.endsWith('PRIVATE KEY')) keys.push(readKey(block, label, password));
  }
  if (keys.length === 0) return { format: 'PEM', keys: [], trusted: certificates };
  return { format: 'PEM', keys: keys.map((key) => ({ key, certificates })), trusted: [] };
}

function readCertificate(block: string, number: number): X509Certificate {
  try {
    return new X509Certificate(block);
  } catch (error) {
    throw new StoreFault(`a certificate (number ${number} of the file) that cannot be decoded`, 'X.509 in PEM', error);
  }
}

function readKey(block: string, label: string, password: string): KeyObject {
  const isEncrypted = label.startsWith('ENCRYPTED') || /^Proc-Type:.*ENCRYPTED/m.test(block);
  if (isEncrypted && password === '')
    throw new StoreFault('an encrypted key and no password', 'the password of the key');
  try {
    return createPrivateKey({ key: block, format: 'pem', passphrase: password });
  } catch (error) {
    if (isEncrypted)
      throw new StoreFault('an encrypted key that this password does not open', 'the right password', error);
    throw new StoreFault(`a ${label} that cannot be decoded`, 'a private key in PEM', error);
  }
}
