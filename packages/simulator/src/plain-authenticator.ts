import { type Authenticator, type Identity, SaslFailure } from '@meerkat/core';
import { NameConversation, SCHEMES } from './users.ts';

/** Authentication of a simulated service: digest without hashing, certificates as they are, names by SASL. */
export const PLAIN_AUTHENTICATOR: Authenticator = {
  initialIdentities(remote, certificate) {
    const ip = { scheme: 'ip', id: remote.host };
    return certificate === null ? [ip] : [ip, { scheme: 'x509', id: certificate.subject }];
  },
  authenticate(scheme, auth): readonly Identity[] | null {
    if (scheme !== 'digest' || auth === null) return null;
    const id = new TextDecoder().decode(auth);
    return id === 'super:super' ? [{ scheme: 'super', id: '' }] : [{ scheme, id }];
  },
  refusesSilently: () => false,
  startSasl: () => new NameConversation(),
  saslFailure: SaslFailure.closes,
  isAdmitted: () => true,
  isValidAclId: (scheme, id) =>
    scheme === 'ip' || (scheme === 'digest' ? id.split(':').length === 2 : isAuthenticatedScheme(scheme)),
  isAuthenticatedScheme,
  isExact: isAuthenticatedScheme,
  refusalOf: () => null,
  matches: (_scheme, identityId, aclId) => identityId === aclId,
  userName: (identity) => (identity.scheme === 'super' ? '' : (identity.id.split(':')[0] ?? '')),
};

function isAuthenticatedScheme(scheme: string): boolean {
  return SCHEMES.some((some) => some === scheme);
}
