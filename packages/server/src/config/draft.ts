import { type CoreOptions, DEFAULT_CORE_OPTIONS, DEFAULT_ENSEMBLE_OPTIONS, type EnsembleOptions } from '@meerkat/core';
import type { ServerRole } from '@meerkat/protocol';
import { type AuthOptions, DEFAULT_AUTH_OPTIONS } from '../auth/authenticator.ts';
import {
  type AdminOptions,
  DEFAULT_ADMIN_OPTIONS,
  DEFAULT_ADMIN_TLS_OPTIONS,
  DEFAULT_METRICS_PORT,
  DEFAULT_METRICS_TLS_OPTIONS,
} from '../http/options.ts';
import {
  DEFAULT_QUORUM_TLS_OPTIONS,
  DEFAULT_TLS_OPTIONS,
  type StoreLocation,
  type TlsOptions,
  type TlsProtocol,
} from '../tls/options.ts';
import { DEFAULT_SERVER_OPTIONS, type ServerOptions } from './options.ts';
import { makeSaslDraft, type SaslDraft } from './sasl-draft.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Those that `zoo-cfg.ts` puts together. */
type ServerKeysElsewhere =
  | 'dataDirectory'
  | 'staticFile'
  | 'dataLogDirectory'
  | 'clientPort'
  | 'secureClientPort'
  | 'auth'
  | 'tls'
  | 'quorumTls'
  | 'admin'
  | 'metricsPort';

/** What the keys of one kind of port say about TLS. */
export interface TlsDraft extends Mutable<Omit<TlsOptions, 'keyStore' | 'trustStore' | 'protocols'>> {
  readonly keyStore: Mutable<StoreLocation>;
  readonly trustStore: Mutable<StoreLocation>;
  /** `ssl.protocol`, which counts unless versions are listed. */
  protocol: TlsProtocol | null;
  enabledProtocols: readonly TlsProtocol[] | null;
  /** Whether certificates that are revoked have to be refused. */
  wantsCrl: boolean;
}

/** A configuration while its file is being read: what the keys write into. Null = not said yet. */
export interface Draft {
  readonly core: Mutable<Omit<CoreOptions, 'snapshotDirectory' | 'logDirectory'>>;
  readonly server: Mutable<Omit<ServerOptions, ServerKeysElsewhere>>;
  readonly tls: TlsDraft;
  readonly quorumTls: TlsDraft;
  readonly auth: Mutable<Omit<AuthOptions, 'sasl'>>;
  readonly sasl: SaslDraft;
  /** The scheme `ensemble` is asked for, and the names that it knows. */
  hasEnsembleScheme: boolean;
  /** `audit.*`; the path as written. */
  readonly audit: { isEnabled: boolean; path: string | null; format: 'text' | 'json' };
  ensembleNames: readonly string[];
  adminEnabled: boolean;
  readonly admin: Mutable<Omit<AdminOptions, 'tls'>>;
  adminPortUnification: boolean;
  adminForceHttps: boolean;
  readonly adminTls: TlsDraft;
  metricsPortEnabled: boolean;
  metricsHost: string;
  /** −1 = none. */
  metricsHttpPort: number | null;
  metricsHttpsPort: number;
  readonly metricsTls: TlsDraft;
  metricsNeedsClientAuth: boolean;
  metricsWantsClientAuth: boolean;
  dataDirectory: string | null;
  dataLogDirectory: string | null;
  clientPort: number | null;
  secureClientPort: number | null;
  /** Milliseconds; null = a multiple of the tick. */
  sessionTimeoutMinMs: number | null;
  sessionTimeoutMaxMs: number | null;
  readonly ensemble: Mutable<Omit<EnsembleOptions, 'membership' | 'membershipRules' | 'initLimit' | 'syncLimit'>>;
  /** Ticks. */
  initLimit: number | null;
  syncLimit: number | null;
  standaloneEnabled: boolean;
  multiAddressEnabled: boolean;
  reachabilityCheckEnabled: boolean;
  peerType: ServerRole | null;
  /** As written: Apache's arbiter of two servers. */
  oraclePath: string | null;
  /** As written: where the members are listed instead of here. */
  dynamicConfigFile: string | null;
  /** What the key that was taken last wants to say about its value. */
  readonly notes: string[];
}

export function makeDraft(): Draft {
  const { initLimit: _init, syncLimit: _sync, ...ensemble } = DEFAULT_ENSEMBLE_OPTIONS;
  const {
    clientPort: _port,
    secureClientPort: _securePort,
    auth: _auth,
    tls: _tls,
    quorumTls: _quorumTls,
    admin: _admin,
    metricsPort: _metricsPort,
    ...server
  } = DEFAULT_SERVER_OPTIONS;
  const { tls: _adminTls, ...admin } = DEFAULT_ADMIN_OPTIONS;
  const { sasl: _sasl, ...authOptions } = DEFAULT_AUTH_OPTIONS;
  return {
    core: { ...DEFAULT_CORE_OPTIONS },
    server: { ...server },
    auth: authOptions,
    sasl: makeSaslDraft(),
    tls: makeTlsDraft(DEFAULT_TLS_OPTIONS),
    quorumTls: makeTlsDraft(DEFAULT_QUORUM_TLS_OPTIONS),
    hasEnsembleScheme: false,
    audit: { isEnabled: false, path: null, format: 'text' },
    ensembleNames: [],
    adminEnabled: true,
    admin: { ...admin },
    adminPortUnification: false,
    adminForceHttps: false,
    adminTls: makeTlsDraft(DEFAULT_ADMIN_TLS_OPTIONS),
    metricsPortEnabled: false,
    metricsHost: DEFAULT_METRICS_PORT.host,
    metricsHttpPort: null,
    metricsHttpsPort: -1,
    metricsTls: makeTlsDraft(DEFAULT_METRICS_TLS_OPTIONS),
    metricsNeedsClientAuth: true,
    metricsWantsClientAuth: true,
    dataDirectory: null,
    dataLogDirectory: null,
    clientPort: null,
    secureClientPort: null,
    sessionTimeoutMinMs: null,
    sessionTimeoutMaxMs: null,
    ensemble: { ...ensemble },
    initLimit: null,
    syncLimit: null,
    standaloneEnabled: true,
    multiAddressEnabled: false,
    reachabilityCheckEnabled: true,
    peerType: null,
    oraclePath: null,
    dynamicConfigFile: null,
    notes: [],
  };
}

function makeTlsDraft({ protocols: _protocols, keyStore, trustStore, ...options }: TlsOptions): TlsDraft {
  return {
    ...options,
    keyStore: { ...keyStore },
    trustStore: { ...trustStore },
    protocol: null,
    enabledProtocols: null,
    wantsCrl: false,
  };
}
