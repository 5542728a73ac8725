import { type Authenticator, type Identity, SaslFailure } from '@meerkat/core';

/** Authentication of a simulated service: digest without hashing. `ann:secret` proves `digest` `ann:secret`. */
export const PLAIN_AUTHENTICATOR: Authenticator = {
  initialIdentities: (remote) => [{ scheme: 'ip', id: remote.host }],
  authenticate(scheme, auth): readonly Identity[] | null {
    if (scheme !== 'digest' || auth === null) return null;
    const id = new TextDecoder().decode(auth);
    return id === 'super:super' ? [{ scheme: 'super', id: '' }] : [{ scheme, id }];
  },
  refusesSilently: () => false,
  startSasl: () => null,
  saslFailure: SaslFailure.closes,
  isAdmitted: () => true,
  isValidAclId: (scheme, id) => scheme === 'ip' || (scheme === 'digest' && id.split(':').length === 2),
  isAuthenticatedScheme: (scheme) => scheme === 'digest',
  isExact: (scheme) => scheme === 'digest',
  refusalOf: () => null,
  matches: (_scheme, identityId, aclId) => identityId === aclId,
  userName: (identity) => (identity.scheme === 'super' ? '' : (identity.id.split(':')[0] ?? '')),
};
