import type { Identity, PeerAddress, PeerCertificate } from '@meerkat/core';

/**
 * One scheme (ZooKeeper's AuthenticationProvider).
 *
 * `world` is not one of them: it has no credentials and is built into the core. Nor is `super`: it is granted by
 * `digest` and cannot be named in an ACL.
 */
export interface Scheme {
  readonly isAuthenticated: boolean;
  /** True when `matches` is equality. */
  readonly isExact: boolean;
  readonly refusesSilently?: boolean;
  authenticate(
    auth: Uint8Array | null,
    remote: PeerAddress,
    certificate: PeerCertificate | null,
    dataOf: (path: string) => Uint8Array | null,
  ): readonly Identity[] | null;
  isValidAclId(id: string): boolean;
  matches(identityId: string, aclId: string): boolean;
  userName(id: string): string;
}
