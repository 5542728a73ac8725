import { digestMd5, kerberos, type SaslMechanism } from '@meerkat/client';
import type { SaslSettings } from './connection-settings.ts';

/** What `connect` is given as `sasl`. Kerberos finds its files as other programs do: KRB5CCNAME, KRB5_CLIENT_KTNAME, KRB5_CONFIG. */
export function saslOption(sasl: SaslSettings | null): { readonly sasl?: SaslMechanism } {
  if (sasl === null) return {};
  return { sasl: sasl === 'kerberos' ? kerberos() : digestMd5(sasl) };
}
