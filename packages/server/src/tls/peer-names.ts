import type { X509Certificate } from 'node:crypto';
import { lookup, reverse } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { TlsOptions } from './options.ts';

type Rules = Pick<TlsOptions, 'prefix' | 'verifiesHostNames' | 'verifiesClientHostNames' | 'allowsReverseLookup'>;

/*
 * Whether a certificate names the peer that has shown it; that an authority has issued it has been checked before.
 */

/** Why a certificate is refused, or the hosts of members that it names; null where names are not checked. */
export type PeerCheckResult = { readonly refusal: string } | { readonly hosts: readonly string[] | null };

/** A client: its certificate has to name the address that it comes from. */
export async function checkClient(
  certificate: X509Certificate,
  address: string,
  rules: Rules,
): Promise<PeerCheckResult> {
  if (!rules.verifiesClientHostNames || (await namesAddress(certificate, address, rules))) return { hosts: null };
  const refusal = `its certificate (${describeNames(certificate)}) does not name its address, as ${rules.prefix}.clientHostnameVerification asks for`;
  return { refusal };
}

/**
 * A server that connects: its certificate has to name a host of the list of members, or the address that it comes from
 * if a host of the list has that address. Which member it is, it says only later: it may be one at these hosts.
 *
 * With `allowReverseDnsLookup` Apache's rule is sufficient as well: the certificate names the address, or any name that
 * the name service returns for it.
 *
 * @param hosts of the list of members
 */
export async function checkMember(
  certificate: X509Certificate,
  address: string,
  hosts: readonly string[],
  rules: Rules,
): Promise<PeerCheckResult> {
  if (!rules.verifiesHostNames || !rules.verifiesClientHostNames) return { hosts: null };
  if (rules.allowsReverseLookup && (await namesAddress(certificate, address, rules))) return { hosts: null };
  const named = hosts.filter((host) => namesHost(certificate, host));
  if (named.length > 0) return { hosts: named };
  // The name service is asked only where it decides: it may take its time.
  const resolved = certificate.checkIP(address) === undefined ? [] : await hostsAt(hosts, address);
  if (resolved.length > 0) return { hosts: resolved };
  const refusal =
    `its certificate (${describeNames(certificate)}) names no member of the ensemble: ${hosts.join(', ')}. ` +
    `Issue one whose subjectAltName has such a host; ${rules.prefix}.clientHostnameVerification=false takes every certificate of the trust store`;
  return { refusal };
}

/**
 * A server that was connected to: its certificate has to name the host of the list, or the address behind it.
 *
 * @returns why it is refused, null when it is not
 */
export async function refusalOfServer(
  certificate: X509Certificate,
  host: string,
  address: string,
  rules: Rules,
): Promise<string | null> {
  if (!rules.verifiesHostNames || namesHost(certificate, host)) return null;
  if (await namesAddress(certificate, address, rules)) return null;
  return `its certificate (${describeNames(certificate)}) does not name ${host}, as ${rules.prefix}.hostnameVerification asks for`;
}

/** Subject and alternative names, for messages. */
export function describeNames({ subject, subjectAltName }: X509Certificate): string {
  const names = (subject ?? '').replaceAll('\n', ', ');
  return subjectAltName === undefined ? `${names}, without a subjectAltName` : `${names}, ${subjectAltName}`;
}

/** The common name counts only where no alternative name does, as in Java. */
function namesHost(certificate: X509Certificate, host: string): boolean {
  return isIP(host) === 0 ? certificate.checkHost(host) !== undefined : certificate.checkIP(host) !== undefined;
}

async function namesAddress(certificate: X509Certificate, address: string, rules: Rules): Promise<boolean> {
  if (certificate.checkIP(address) !== undefined) return true;
  if (!rules.allowsReverseLookup) return false;
  const names = await reverse(address).catch(() => []);
  return names.some((name) => certificate.checkHost(name) !== undefined);
}

/** Those hosts that have this address. */
async function hostsAt(hosts: readonly string[], address: string): Promise<readonly string[]> {
  const names = hosts.filter((host) => isIP(host) === 0);
  const found = await Promise.all(names.map((name) => lookup(name, { all: true }).catch(() => [])));
  return names.filter((_, i) => found[i]!.some((entry) => entry.address === address));
}
