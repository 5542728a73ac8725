import { type AdminOptions, DEFAULT_METRICS_PORT, type MetricsPortOptions } from '../http/options.ts';
import type { Draft, TlsDraft } from './draft.ts';
import { findTlsFaults, makeTlsOptions, type TlsFault } from './tls.ts';

/** @param configurationText without secrets */
export function makeAdminOptions(
  draft: Draft,
  configurationText: string,
  resolvePath: (path: string) => string,
): AdminOptions | null {
  if (!draft.adminEnabled) return null;
  const tls =
    reasonForAdminTls(draft) === null
      ? null
      : { options: makeTlsOptions(adminTlsOf(draft), resolvePath), isUnified: !draft.adminForceHttps };
  return { ...draft.admin, configurationText, tls };
}

export function makeMetricsPort(draft: Draft, resolvePath: (path: string) => string): MetricsPortOptions | null {
  if (!draft.metricsPortEnabled) return null;
  const { metricsHost: host, metricsHttpsPort } = draft;
  const port = metricsHttpPortOf(draft);
  const options = makeTlsOptions(metricsTlsOf(draft), resolvePath);
  return {
    host,
    port: port < 0 ? null : port,
    secure: metricsHttpsPort < 0 ? null : { port: metricsHttpsPort, options },
  };
}

/** What keeps the ports that answer by HTTP from being opened as the file says. */
export function findHttpFaults(draft: Draft): readonly TlsFault[] {
  const { metricsPortEnabled, metricsHttpsPort } = draft;
  const faults: TlsFault[] = [];
  const reason = reasonForAdminTls(draft);
  if (draft.adminEnabled && reason !== null) {
    const without = 'admin.needClientAuth=false';
    faults.push(...findTlsFaults(adminTlsOf(draft), reason, without));
  } else if (draft.adminEnabled && draft.adminTls.clientAuth === 'need') {
    const expected = 'admin.forceHttps=true as well: no certificate can be shown without TLS';
    faults.push({ key: 'admin.needClientAuth', found: null, expected });
  }
  if (metricsPortEnabled && metricsHttpsPort >= 0) {
    const without = 'metricsProvider.ssl.need.client.auth=false';
    faults.push(...findTlsFaults(metricsTlsOf(draft), 'metricsProvider.httpsPort', without));
  }
  if (metricsPortEnabled && metricsHttpPortOf(draft) < 0 && metricsHttpsPort < 0) {
    const expected = 'a port, or another metricsProvider.className: that one opens a port for Prometheus';
    faults.push({ key: 'metricsProvider.httpPort', found: null, expected });
  }
  return faults;
}

/** Whether administrators can show certificates. */
export function hasAdminCertificates(draft: Draft): boolean {
  return draft.adminEnabled && reasonForAdminTls(draft) !== null && draft.adminTls.clientAuth === 'need';
}

function reasonForAdminTls({ adminForceHttps, adminPortUnification }: Draft): string | null {
  if (adminForceHttps) return 'admin.forceHttps';
  return adminPortUnification ? 'admin.portUnification' : null;
}

/** What `admin.ssl.*` says, or without any such line what `ssl.quorum.*` says, which is what Apache's admin port reads. */
function adminTlsOf({ adminTls, quorumTls }: Draft): TlsDraft {
  const { keyStore, trustStore, crlPath, wantsCrl, enabledProtocols, cipherSuites, clientAuth } = adminTls;
  const values = [keyStore.path, trustStore.path, crlPath, enabledProtocols, cipherSuites];
  return wantsCrl || values.some((value) => value !== null) ? adminTls : { ...quorumTls, clientAuth };
}

function metricsTlsOf({ metricsTls, metricsNeedsClientAuth, metricsWantsClientAuth }: Draft): TlsDraft {
  return { ...metricsTls, clientAuth: metricsNeedsClientAuth ? 'need' : metricsWantsClientAuth ? 'want' : 'none' };
}

function metricsHttpPortOf({ metricsHttpPort, metricsHttpsPort }: Draft): number {
  return metricsHttpPort ?? (metricsHttpsPort < 0 ? DEFAULT_METRICS_PORT.port : -1);
}
