/*
 * An instance of a service as written by Curator's discovery, in UTF-8:
 *
 *     {"name":"search","id":"a1","address":"10.0.0.1","port":8080,"sslPort":null,"payload":null,
 *      "registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC",
 *      "uriSpec":{"parts":[{"value":"scheme","variable":true},…]}}
 *
 * The payload has Jackson's type info by class: an object has a member "@class" with the name of its Java class, a list
 * is the second element of a list that starts with the name of its class, everything else is unchanged. A disabled
 * instance has "enabled":false at its end; older releases of Curator do not know that member, so it is left out
 * otherwise.
 */

/** How long an instance is registered: as long as the session of its process, or until it is deleted. */
export type ServiceType = 'DYNAMIC' | 'DYNAMIC_SEQUENTIAL' | 'STATIC' | 'PERMANENT';

/** A process, or another endpoint, that provides the service. */
export interface ServiceInstance<T = unknown> {
  /** Of the service. */
  readonly name: string;
  /** Unique within the service. */
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  /** Application data: a JSON value. */
  readonly payload: T | null;
  /** The Java class of an object payload, for readers in Java; with null they get a map. */
  readonly payloadClass: string | null;
  /** Milliseconds since 1970, by the clock of the client that registered it. */
  readonly registrationTimeMs: number;
  readonly serviceType: ServiceType;
  /** How to call it, for instance `{scheme}://{address}:{port}/search`; null when not given. */
  readonly uriSpec: string | null;
  /** One that is not enabled is listed and never chosen. */
  readonly isEnabled: boolean;
}

/** The bytes of its znode, as text. */
export function formatInstance(instance: ServiceInstance): string {
  const { name, id, address, port, sslPort, payload, payloadClass, serviceType, uriSpec } = instance;
  return JSON.stringify({
    name,
    id,
    address,
    port,
    sslPort,
    payload: withClass(payload, payloadClass),
    registrationTimeUTC: instance.registrationTimeMs,
    serviceType,
    uriSpec: uriSpec === null ? null : { parts: partsOf(uriSpec) },
    ...(instance.isEnabled ? {} : { enabled: false }),
  });
}

/** null for data that is no instance: other writers at the path must not break the clients of the service. */
export function parseInstance<T>(data: Uint8Array): ServiceInstance<T> | null {
  let record: unknown;
  try {
    record = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch {
    return null;
  }
  if (!isRecord(record)) return null;
  const { name, id, serviceType, registrationTimeUTC } = record;
  if (typeof name !== 'string' || typeof id !== 'string') return null;
  const [payload, payloadClass] = withoutClass(record['payload']);
  return {
    name,
    id,
    address: typeof record['address'] === 'string' ? record['address'] : null,
    port: numberOrNull(record['port']),
    sslPort: numberOrNull(record['sslPort']),
    payload: payload as T | null,
    payloadClass,
    registrationTimeMs: numberOrNull(registrationTimeUTC) ?? 0,
    serviceType: SERVICE_TYPES.find((type) => type === serviceType) ?? 'DYNAMIC',
    uriSpec: specOf(record['uriSpec']),
    isEnabled: record['enabled'] !== false,
  };
}

/**
 * The URI of an instance: its `uriSpec` with the variables scheme (https when there is a secure port), name, id,
 * address, port, ssl-port, registration-time-utc, service-type, `[` and `]` for braces, and the given ones. An unknown
 * variable is left out, as Curator does.
 *
 * @returns '' for an instance without a uriSpec
 * @example
 * buildUri(instance, { query: 'apples' });
 */
export function buildUri(instance: ServiceInstance, variables: Readonly<Record<string, string>> = {}): string {
  const { name, id, address, port, sslPort, registrationTimeMs, serviceType } = instance;
  const known: Readonly<Record<string, unknown>> = {
    '[': '{',
    ']': '}',
    scheme: sslPort === null ? 'http' : 'https',
    name,
    id,
    address,
    port,
    'ssl-port': sslPort,
    'registration-time-utc': registrationTimeMs,
    'service-type': serviceType.toLowerCase(),
    ...variables,
  };
  const read = (variable: string): unknown => (Object.hasOwn(known, variable) ? known[variable] : null);
  const parts = partsOf(instance.uriSpec ?? '');
  return parts.map(({ value, variable }) => (variable ? `${read(value) ?? ''}` : value)).join('');
}

const SERVICE_TYPES = ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC', 'PERMANENT'] as const;

interface UriPart {
  readonly value: string;
  readonly variable: boolean;
}

/** `{a}/b` is the variable a, followed by the text `/b`. */
function partsOf(spec: string): readonly UriPart[] {
  return [...spec.matchAll(/\{([^{}]*)\}|([^{}]+)/g)].map(([, variable, value]) =>
    variable === undefined ? { value: value ?? '', variable: false } : { value: variable.trim(), variable: true },
  );
}

function specOf(record: unknown): string | null {
  if (!isRecord(record) || !Array.isArray(record['parts'])) return null;
  return record['parts']
    .filter((part): part is UriPart => isRecord(part) && typeof part['value'] === 'string')
    .map(({ value, variable }) => (variable ? `{${value}}` : value))
    .join('');
}

function withClass(payload: unknown, payloadClass: string | null): unknown {
  if (Array.isArray(payload)) return [payloadClass ?? LIST_CLASS, payload];
  return isRecord(payload) && payloadClass !== null ? { [CLASS]: payloadClass, ...payload } : payload;
}

function withoutClass(payload: unknown): [payload: unknown, payloadClass: string | null] {
  if (Array.isArray(payload) && payload.length === 2 && typeof payload[0] === 'string') return [payload[1], payload[0]];
  if (!isRecord(payload)) return [payload ?? null, null];
  const { [CLASS]: name, ...others } = payload;
  return typeof name === 'string' ? [others, name] : [payload, null];
}

const CLASS = '@class';
const LIST_CLASS = 'java.util.ArrayList';

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
