import type { Scheme } from './scheme.ts';

const TEXT = new TextDecoder('utf-8', { ignoreBOM: true });

/** How often clients have named the ensemble rightly, wrongly, or not at all; where it has no name all are of the last kind. */
export interface EnsembleAnswers {
  success: number;
  fail: number;
  skip: number;
}

/**
 * `ensemble` (EnsembleAuthenticationProvider): the client names the ensemble that it expects. It grants no identity,
 * and keeps clients with an outdated list of servers out of the wrong ensemble. A refusal is not answered, so that the
 * client tries another server.
 *
 * @param names of this ensemble; empty: every client is accepted
 */
export function makeEnsembleScheme(names: readonly string[], answers: EnsembleAnswers): Scheme {
  return {
    isAuthenticated: false,
    isExact: true,
    refusesSilently: true,
    authenticate(auth) {
      const kind =
        auth === null || auth.length === 0 || names.length === 0
          ? 'skip'
          : names.includes(TEXT.decode(auth))
            ? 'success'
            : 'fail';
      answers[kind]++;
      return kind === 'fail' ? null : [];
    },
    isValidAclId: () => false,
    matches: () => false,
    userName: (id) => id,
  };
}

/**
 * `key` (KeyAuthenticationProvider), an example of Apache's that proves little: the client says a number that is a multiple of the
 * one in the znode /key. Everybody who does, or everybody as long as there is no such znode, has the same id, the empty one.
 */
export const KEY_SCHEME: Scheme = {
  isAuthenticated: true,
  isExact: true,
  authenticate(auth, _remote, _certificate, dataOf) {
    const key = dataOf('/key');
    if (auth === null || (key !== null && !isMultiple(TEXT.decode(auth), TEXT.decode(key)))) return null;
    return [{ scheme: 'key', id: '' }];
  },
  isValidAclId: () => true,
  matches: (identityId, aclId) => identityId === aclId,
  userName: (id) => id,
};

function isMultiple(text: string, of: string): boolean {
  const [value, key] = [readInt(text), readInt(of)];
  return value !== null && key !== null && (key === 0 || value % key === 0);
}

/** As `Integer.parseInt` reads it. */
function readInt(text: string): number | null {
  if (!/^[+-]?\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return value === Math.trunc(value) && value >= -(2 ** 31) && value < 2 ** 31 ? value : null;
}
