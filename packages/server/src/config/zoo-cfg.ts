import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { HostPort } from '@meerkat/protocol';
import type { AuditOptions } from '../audit/audit-log.ts';
import type { AuthOptions } from '../auth/authenticator.ts';
import { type Draft, makeDraft } from './draft.ts';
import { type EnsembleSource, type Findings, readEnsemble } from './ensemble.ts';
import { findHttpFaults, hasAdminCertificates, makeAdminOptions, makeMetricsPort } from './http.ts';
import type { Key } from './key.ts';
import { findKey, findSimilarName } from './keys.ts';
import type { Configuration } from './options.ts';
import { hideSecrets, type Property, parseProperties, placeOfProperty } from './properties.ts';
import { readQuorumSasl, readSasl, readSessionSecrets } from './sasl.ts';
import { findTlsFaults, makeTlsOptions } from './tls.ts';

/** One thing in a configuration that stops the start. */
export interface ConfigurationFault {
  readonly file: string;
  /** From 1; null when something is missing. */
  readonly line: number | null;
  /** Null when the line has no key that could be read. */
  readonly key: string | null;
  readonly found: string;
  readonly expected: string;
}

/** The configuration cannot be used: all that is wrong with it, each fault on a line of its own. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly faults: readonly ConfigurationFault[];

  constructor(faults: readonly ConfigurationFault[]) {
    super(faults.map(formatFault).join('\n'));
    this.faults = faults;
  }
}

/** A configuration and what its author should know about it. */
export interface ReadConfiguration extends Configuration {
  /** Each with file, line and key. */
  readonly warnings: readonly string[];
}

export interface ZooCfg {
  readonly text: string;
  /** Name of the file, for messages. */
  readonly file: string;
  /** Relative paths start here. */
  readonly workingDirectory: string;
  /** What counts unless the file says otherwise: system properties of Java (`readJvmFlags`). */
  readonly systemProperties?: readonly Property[];
  /** False: `file` is a name for messages, and there is no such file. */
  readonly isFile?: boolean;
  /** Reads the files `myid` and `dynamicConfigFile`, in UTF-8; from this machine when left out. Throws Node's errors. */
  readonly readFile?: (path: string) => string;
}

/**
 * Reads a ZooKeeper configuration file.
 *
 * Like ZooKeeper, the last of several lines with one key counts. Unlike ZooKeeper, what it takes as Java system
 * properties stands in the file with or without `zookeeper.`, and a value that cannot be used stops the start.
 *
 * @throws ConfigurationError with everything that is wrong, never anything else
 */
export function readZooCfg(source: ZooCfg): ReadConfiguration {
  return new ZooCfgReader(source).read();
}

class ZooCfgReader {
  readonly #source: ZooCfg;
  readonly #draft: Draft = makeDraft();
  readonly #faults: ConfigurationFault[] = [];
  readonly #warnings: string[] = [];
  /** The line that counts for each key, by the key's name without prefix. */
  readonly #lines: Map<string, Property> = new Map();

  constructor(source: ZooCfg) {
    this.#source = source;
  }

  read(): ReadConfiguration {
    const { properties, faults } = parseProperties(this.#source.text);
    for (const { line, found, expected } of faults) this.#fault(line, null, found, expected);
    for (const property of this.#source.systemProperties ?? []) this.#noteRepetition(property);
    for (const property of properties) this.#noteRepetition(property);
    for (const property of this.#lines.values()) this.#take(property);
    const configuration = this.#finish();
    if (this.#faults.length > 0) throw new ConfigurationError(this.#faults);
    return { ...configuration, warnings: this.#warnings };
  }

  #noteRepetition(property: Property): void {
    const name = property.key.startsWith('zookeeper.') ? property.key.slice('zookeeper.'.length) : property.key;
    const earlier = this.#lines.get(name);
    if (earlier !== undefined) this.#warn(earlier, `is overridden by ${property.origin ?? `line ${property.line}`}`);
    // Deleted first, so that the order is that of the lines that count.
    this.#lines.delete(name);
    this.#lines.set(name, property);
  }

  #take(property: Property): void {
    const { key: name, value } = property;
    const key = findKey(name);
    if (key === null) {
      const similar = findSimilarName(name);
      this.#warn(property, `is unknown and ignored${similar === null ? '' : `; is ${similar} meant?`}`);
      return;
    }
    if (key.tier === 'security' && !isHarmless(key, value)) {
      const expected = `no such line: ${key.meaning} is not supported by this version, and without it the server would be less safe than this file says`;
      this.#faultAt(property, name, value, expected);
      return;
    }
    if (!key.take(value, this.#draft, name)) this.#faultAt(property, name, value, key.expected);
    for (const note of this.#draft.notes.splice(0)) this.#warn(property, note);
  }

  /** Puts together what several keys decide, and checks what belongs together. */
  #finish(): Configuration {
    const draft = this.#draft;
    const dataDirectory = this.#requireValue(draft.dataDirectory, 'dataDir', 'dataDir=/path/to/data');
    const absoluteDataDirectory = resolve(this.#source.workingDirectory, dataDirectory ?? '');
    const dataLogDirectory = resolve(this.#source.workingDirectory, draft.dataLogDirectory ?? absoluteDataDirectory);
    const source = this.#sourceFor(absoluteDataDirectory, dataLogDirectory);
    const findings: Findings = {
      fault: (place, found, expected) => this.#faults.push({ ...place, found, expected }),
      warn: ({ file, line, key }, what) =>
        this.#warnings.push(`${file}${line === null ? '' : `, line ${line}`}: ${key ?? ''} ${what}`),
    };
    const membered = readEnsemble(source, findings);
    const sasl = readSasl(source, findings);
    const quorumSasl = readQuorumSasl(source, findings);
    const sessionSecrets = readSessionSecrets(source, findings);
    if (membered !== null) {
      if (membered.client !== null) this.#takeClient(membered.client, PLAIN);
      if (membered.secureClient !== null) this.#takeClient(membered.secureClient, SECURE);
    }
    // A list of members that cannot be used would perhaps have said where clients connect.
    const isUnknown = membered === null && draft.dynamicConfigFile !== null;
    if (draft.secureClientPort === null && !isUnknown)
      this.#requireValue(draft.clientPort, 'clientPort', 'clientPort=2181');
    this.#checkTls();
    const tickTimeMs = draft.core.tickTimeMs;
    const sessionTimeoutMinMs = draft.sessionTimeoutMinMs ?? tickTimeMs * 2;
    const sessionTimeoutMaxMs = draft.sessionTimeoutMaxMs ?? tickTimeMs * 20;
    if (sessionTimeoutMinMs > sessionTimeoutMaxMs) {
      const property = this.#lines.get('minSessionTimeout') ?? this.#lines.get('maxSessionTimeout');
      const found = `minSessionTimeout ${sessionTimeoutMinMs} and maxSessionTimeout ${sessionTimeoutMaxMs} with tickTime ${tickTimeMs}`;
      this.#faultAt(property, property?.key ?? 'minSessionTimeout', found, 'minSessionTimeout ≤ maxSessionTimeout');
    }
    const ensemble = membered?.ensemble ?? null;
    if (draft.core.extendedTypesEnabled && draft.core.emulate353TtlZnodes && (ensemble?.serverId ?? 1) > 127) {
      const found = `true at server ${ensemble?.serverId}`;
      const expected = 'false, or ids of servers up to 127: sessions of others begin as the owners of such TTL znodes';
      this.#faultAt(this.#lines.get('emulate353TTLNodes'), 'emulate353TTLNodes', found, expected);
    }
    return {
      core: {
        ...draft.core,
        ...(ensemble === null ? {} : { serverId: ensemble.serverId, ensemble: ensemble.options }),
        sessionTimeoutMinMs,
        sessionTimeoutMaxMs,
        snapshotDirectory: `${absoluteDataDirectory}/version-2`,
        logDirectory: `${dataLogDirectory}/version-2`,
      },
      server: {
        ...draft.server,
        admin: makeAdminOptions(draft, hideSecrets(this.#source.text), (path) => this.#resolvePath(path)),
        metricsPort: makeMetricsPort(draft, (path) => this.#resolvePath(path)),
        quorumSasl,
        sessionSecrets,
        audit: this.#readAudit(),
        auth: {
          ...draft.auth,
          ...sasl,
          ...this.#readProviders(),
          x509Enabled: draft.auth.x509Enabled || this.#hasTlsForClients || hasAdminCertificates(draft),
        },
        dataDirectory: absoluteDataDirectory,
        dataLogDirectory,
        staticFile: this.#source.isFile === false ? null : this.#resolvePath(this.#source.file),
        clientPort: draft.clientPort,
        secureClientPort: draft.secureClientPort,
        tls: makeTlsOptions(draft.tls, (path) => this.#resolvePath(path)),
        quorumTls: makeTlsOptions(draft.quorumTls, (path) => this.#resolvePath(path)),
      },
    };
  }

  get #hasTlsForClients(): boolean {
    return this.#draft.secureClientPort !== null || this.#draft.server.clientPortUnification;
  }

  #resolvePath(path: string): string {
    return resolve(this.#source.workingDirectory, path);
  }

  #checkTls(): void {
    const { server, tls, quorumTls, secureClientPort, clientPort } = this.#draft;
    if (server.secureClientHost !== null && secureClientPort === null) {
      this.#requireValue(
        secureClientPort,
        'secureClientPort',
        'secureClientPort=2281: there is a secureClientPortAddress',
      );
    }
    if (server.clientPortUnification && clientPort === null) {
      this.#requireValue(clientPort, 'clientPort', 'clientPort=2181: client.portUnification is about it');
    }
    const clients =
      secureClientPort !== null ? 'secureClientPort' : server.clientPortUnification ? PORT_UNIFICATION : null;
    const servers = server.sslQuorum ? 'sslQuorum' : server.quorumPortUnification ? 'portUnification' : null;
    const faults = [
      ...(clients === null ? [] : findTlsFaults(tls, clients, 'ssl.clientAuth=none')),
      ...(servers === null ? [] : findTlsFaults(quorumTls, servers, null)),
      ...findHttpFaults(this.#draft),
    ];
    for (const { key, found, expected } of faults) {
      const property = this.#lines.get(key);
      this.#faultAt(property, key, found ?? property?.value ?? 'no such line', expected);
    }
  }

  #readAudit(): AuditOptions | null {
    const { isEnabled, path, format } = this.#draft.audit;
    return isEnabled ? { path: path === null ? null : this.#resolvePath(path), format } : null;
  }

  #readProviders(): Pick<AuthOptions, 'ensembleNames' | 'providerModules'> {
    const { hasEnsembleScheme, ensembleNames, auth } = this.#draft;
    return {
      ensembleNames: hasEnsembleScheme ? ensembleNames : null,
      providerModules: auth.providerModules.map((path) => this.#resolvePath(path)),
    };
  }

  /** For what several keys and other files decide together. */
  #sourceFor(dataDirectory: string, dataLogDirectory: string): EnsembleSource {
    const { file, readFile = (path) => readFileSync(path, 'utf8') } = this.#source;
    return {
      file,
      lines: this.#lines,
      draft: this.#draft,
      dataDirectory,
      dataLogDirectory,
      resolvePath: (path) => this.#resolvePath(path),
      readFile,
    };
  }

  /** The list may say where clients connect, in place of `clientPort` and `clientPortAddress` or as they do. */
  #takeClient({ host, port }: HostPort, { portKey, hostKey }: ClientKeys): void {
    const draft = this.#draft;
    const bareHost = host === ANY_HOST ? null : host;
    const knownHost = draft.server[hostKey];
    const isContradicted =
      (draft[portKey] !== null && draft[portKey] !== port) ||
      (knownHost !== null && bareHost !== null && knownHost !== bareHost);
    if (isContradicted) {
      const line = this.#lines.get(portKey) ?? this.#lines.get(`${portKey}Address`);
      const expected = `what the list of members says about this server, ${host}:${port}, or no such line`;
      this.#faultAt(line, line?.key ?? portKey, line?.value ?? '', expected);
      return;
    }
    draft[portKey] = port;
    draft.server[hostKey] ??= bareHost;
  }

  #requireValue<T>(value: T | null, key: string, example: string): T | null {
    // An invalid line was reported already.
    if (value === null && !this.#lines.has(key)) this.#fault(null, key, 'no such line', `a line such as ${example}`);
    return value;
  }

  #faultAt(property: Property | undefined, key: string | null, found: string, expected: string): void {
    const { file, line } = placeOfProperty(property, this.#source.file);
    this.#faults.push({ file, line, key, found, expected });
  }

  #fault(line: number | null, key: string | null, found: string, expected: string): void {
    this.#faults.push({ file: this.#source.file, line, key, found, expected });
  }

  #warn(property: Property, what: string): void {
    const { file, line } = placeOfProperty(property, this.#source.file);
    this.#warnings.push(`${file}${line === null ? '' : `, line ${line}`}: ${property.key} ${what}`);
  }
}

/** Where the draft has the port and the address of clients; the keys in the file have the names of the ports. */
interface ClientKeys {
  readonly portKey: 'clientPort' | 'secureClientPort';
  readonly hostKey: 'clientHost' | 'secureClientHost';
}

const PLAIN: ClientKeys = { portKey: 'clientPort', hostKey: 'clientHost' };
const SECURE: ClientKeys = { portKey: 'secureClientPort', hostKey: 'secureClientHost' };
const PORT_UNIFICATION = 'client.portUnification';

/** What a client port without an address means in the list of members. */
const ANY_HOST = '0.0.0.0';

function isHarmless(key: Key, value: string): boolean {
  return key.harmless.some((harmless) => harmless.toLowerCase() === value.toLowerCase());
}

/** Keys whose values must not be logged. */
const SECRET_KEY = /password$|superDigest$/i;

function formatFault({ file, line, key, found, expected }: ConfigurationFault): string {
  const place = line === null ? file : `${file}, line ${line}`;
  if (SECRET_KEY.test(key ?? '')) return `${place}: ${key}: found a value that is not shown, expected ${expected}`;
  const shown = found.length > 200 ? `${found.slice(0, 200)}…` : found;
  return `${place}${key === null ? '' : `: ${key}`}: found ${JSON.stringify(shown)}, expected ${expected}`;
}
