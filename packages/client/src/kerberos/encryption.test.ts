import { describe, expect, test } from 'vitest';
import { decryptCts, ENCRYPTION_TYPES, encryptCts, nFold } from './encryption.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('n-fold', () => {
  // RFC 3961, appendix A.1.
  test.each([
    ['012345', 8, 'be072631276b1955'],
    ['password', 7, '78a07b6caf85fa'],
    ['Rough Consensus, and Running Code', 8, 'bb6ed30870b7f0e0'],
    ['password', 21, '59e4a8ca7c0385c3c37b3f6d2000247cb6e6bd5b3e'],
    ['kerberos', 16, '6b65726265726f737b9b5b2b93132b93'],
  ])('of %j to %i bytes is that of RFC 3961', (text, size, folded) => {
    expect(nFold(Buffer.from(text), size).toString('hex')).toBe(folded);
  });
});

describe('AES with ciphertext stealing', () => {
  const key = Buffer.from('chicken teriyaki');
  // RFC 3962, appendix B.
  test.each([
    ['49207761 6e742074 68652047 656e6572 616c2047 61752773 2043', 'skipped'],
    ['4920776f 756c6420 6c696b65 20746865 20', 'c6353568 f2bf8cb4 d8a58036 2da7ff7f 97'],
    [
      '4920776f 756c6420 6c696b65 20746865 2047656e 6572616c 20476175 277320',
      'fc00783e 0efdb2c1 d445d4c8 eff7ed22 97687268 d6ecccc0 c07b25e2 5ecfe5',
    ],
    [
      '4920776f 756c6420 6c696b65 20746865 2047656e 6572616c 20476175 27732043',
      '39312523 a78662d5 be7fcbcc 98ebf5a8 97687268 d6ecccc0 c07b25e2 5ecfe584',
    ],
  ])('%s', (plain, sealed) => {
    if (sealed !== 'skipped') expect(encryptCts(key, hex(plain)).toString('hex')).toBe(hex(sealed).toString('hex'));
    expect(decryptCts(key, encryptCts(key, hex(plain)))).toEqual(hex(plain));
  });
});

describe('HMAC-SHA-2 (RFC 8009, appendix A, key usage 2)', () => {
  const data = Buffer.from(Array.from({ length: 21 }, (_, i) => i));
  test.each([
    [19, '3705D96080C17728A0E800EAB6E0D23C', 'D78367186643D67B411CBA9139FC1DEE'],
    [
      20,
      '6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52',
      '45EE791567EEFCA37F4AC1E0222DE80D43C3BFA06699672A',
    ],
  ])('the checksum of type %i is that of the RFC', (number, key, checksum) => {
    const type = ENCRYPTION_TYPES.get(number);
    expect(type?.checksum(hex(key), 2, data).toString('hex').toUpperCase()).toBe(checksum);
  });

  test('an empty message is decrypted', () => {
    const message = hex('EF85FB890BB8472F4DAB20394DCA781D AD877EDA39D50C870C0D5A0A8E48C718');
    const type = ENCRYPTION_TYPES.get(19);
    expect(type?.decrypt(hex('3705D96080C17728A0E800EAB6E0D23C'), 2, message)).toEqual(Buffer.alloc(0));
  });
});

describe.each([...ENCRYPTION_TYPES.values()])('$name', (type) => {
  const key = Buffer.alloc(type.keyBytes, 7);

  test('decrypts what it has encrypted, of any length, and nothing else', () => {
    for (let length = 0; length <= 50; length++) {
      const plain = Buffer.alloc(length, length);
      const message = type.encrypt(key, 11, plain);
      expect(type.decrypt(key, 11, message)).toEqual(plain);
      expect(type.decrypt(key, 12, message)).toBeNull();
      expect(type.decrypt(Buffer.alloc(type.keyBytes, 8), 11, message)).toBeNull();
      for (const at of [0, 16, message.length - 1]) {
        const changed = Buffer.from(message);
        changed[at] = (changed[at] ?? 0) ^ 1;
        expect(type.decrypt(key, 11, changed)).toBeNull();
      }
      expect(type.decrypt(key, 11, message.subarray(0, 15))).toBeNull();
    }
  });
});
