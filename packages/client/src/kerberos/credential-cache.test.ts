import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseCredentialCache } from './credential-cache.ts';

/* A cache as described by MIT's documentation of the format. */
const u2 = (value: number): Buffer => Buffer.from([value >> 8, value]);
const u4 = (value: number): Buffer => Buffer.from([value >> 24, value >> 16, value >> 8, value]);
const data = (value: string | Buffer): Buffer => Buffer.concat([u4(value.length), Buffer.from(value)]);
const principal = (realm: string, ...parts: readonly string[]): Buffer =>
  Buffer.concat([u4(1), u4(parts.length), data(realm), ...parts.map(data)]);
const list = (...entries: readonly (readonly [number, string])[]): Buffer =>
  Buffer.concat([u4(entries.length), ...entries.flatMap(([type, value]) => [u2(type), data(value)])]);

function credential(version: 3 | 4, service: Buffer): Buffer {
  const type = version === 3 ? [u2(18), u2(18)] : [u2(18)];
  const times = [1000, 0, 2000, 3000].map(u4);
  const lists = [list([2, 'abcd'], [24, 'x']), list([1, 'authorization'])];
  return Buffer.concat([
    ...[principal('R', 'ann'), service, ...type, data(Buffer.alloc(32, 7)), ...times],
    ...[Buffer.of(0), u4(0x40e10000), ...lists, data('the ticket'), data('')],
  ]);
}

function cache(version: 3 | 4): Buffer {
  const header = version === 3 ? [] : [u2(12), u2(1), u2(8), Buffer.alloc(8)];
  const configuration = principal('X-CACHECONF:', 'krb5_ccache_conf_data', 'fast_avail', 'krbtgt/R@R');
  const service = principal('R', 'zookeeper', 'host');
  const credentials = [configuration, service].map((each) => credential(version, each));
  return Buffer.concat([Buffer.of(5, version), ...header, principal('R', 'ann'), ...credentials]);
}

test.each([3, 4] as const)("reads tickets of version %i, and skips kinit's own entries", (version) => {
  expect(parseCredentialCache(cache(version))).toEqual({
    principal: 'ann@R',
    tickets: [
      {
        client: 'ann@R',
        service: 'zookeeper/host@R',
        ticket: Buffer.from('the ticket'),
        sessionKey: { encryptionType: 18, bytes: Buffer.alloc(32, 7) },
        startsMs: 1_000_000,
        endsMs: 2_000_000,
      },
    ],
  });
});

test('is null for a truncated or invalid file, which never throws', () => {
  const whole = cache(4);
  expect(parseCredentialCache(whole.subarray(0, whole.length - 1))).toBeNull();
  expect(parseCredentialCache(Buffer.from('05020000', 'hex'))).toBeNull();
  expect(parseCredentialCache(new Uint8Array(0))).toBeNull();
  fc.assert(
    fc.property(fc.nat(whole.length), fc.nat(255), fc.nat(whole.length), (at, byte, end) => {
      const changed = Buffer.from(whole.subarray(0, end));
      if (at < changed.length) changed[at] = byte;
      parseCredentialCache(changed);
    }),
  );
});
