import { requestChannel } from './channels.ts';
import type { RequestTrace } from './request-trace.ts';

/*
 * Spans of requests, created from the diagnostics channel: one CLIENT span per request, from the call to the reply, a
 * child of the span that is active at the call. Attributes are named by OpenTelemetry's semantic conventions for
 * databases, where they define one.
 */

/** The used part of the package `@opentelemetry/api`, version 1. */
export interface OpenTelemetryApi {
  readonly trace: { getTracer(name: string): Tracer };
}

interface Tracer {
  startSpan(name: string, options: { kind: number; attributes: Record<string, string | number> }): Span;
}

interface Span {
  setAttribute(key: string, value: string | number): unknown;
  setStatus(status: { code: number; message: string }): unknown;
  recordException(error: Error): unknown;
  end(): void;
}

/**
 * Creates a span for every request of every client from now on. A second call replaces the first.
 *
 * `connect` does this automatically if an OpenTelemetry SDK is registered by then; call it in bundled programs, and
 * where the SDK is registered later.
 *
 * @returns stops it
 * @example
 * import * as api from '@opentelemetry/api';
 * using spans = instrument(api);
 */
export function instrument(api: OpenTelemetryApi): Disposable {
  stop?.();
  const tracer = api.trace.getTracer('@meerkat/client');
  const spans = new WeakMap<RequestTrace, Span>();
  const handlers = {
    start(trace: RequestTrace): void {
      spans.set(trace, tracer.startSpan(`zookeeper ${trace.operation}`, { kind: CLIENT, attributes: describe(trace) }));
    },
    end(): void {},
    asyncStart(): void {},
    error(): void {},
    asyncEnd(trace: RequestTrace): void {
      const span = spans.get(trace);
      if (span !== undefined) finish(span, trace);
    },
  };
  requestChannel.subscribe(handlers);
  const end = (): void => {
    requestChannel.unsubscribe(handlers);
    if (stop === end) stop = null;
  };
  stop = end;
  return { [Symbol.dispose]: end };
}

/** `instrument`, where an SDK is registered and the API can be imported; once. Never rejects. */
export async function instrumentIfRegistered(): Promise<void> {
  if (isAutomatic || stop !== null || !isSdkRegistered()) return;
  isAutomatic = true;
  try {
    // Not a literal in the import, so that bundlers do not require the optional package.
    const name = '@opentelemetry/api';
    const api: OpenTelemetryApi = await import(name);
    if (stop === null) instrument(api);
  } catch {
    // This package cannot import the API of the registered SDK: `instrument` has to be called explicitly.
  }
}

/** Stops the current instrumentation; null when there is none. */
let stop: (() => void) | null = null;
let isAutomatic = false;

/** The global registry of every copy of the API, version 1: without a tracer provider there are no spans. */
function isSdkRegistered(): boolean {
  const registered: unknown = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'));
  return typeof registered === 'object' && registered !== null && 'trace' in registered;
}

function describe({ operation, path, server }: RequestTrace): Record<string, string | number> {
  const attributes: Record<string, string | number> = { 'db.system.name': 'zookeeper', 'db.operation.name': operation };
  if (path !== null) attributes['zookeeper.path'] = path;
  if (server !== null) Object.assign(attributes, describeServer(server));
  return attributes;
}

function describeServer(server: NonNullable<RequestTrace['server']>): Record<string, string | number> {
  return {
    'server.address': server.host,
    'server.port': server.port,
    'network.peer.address': server.address,
    'network.peer.port': server.port,
  };
}

function finish(span: Span, { server, zxid, error }: RequestTrace): void {
  // The request may have waited for the connection.
  if (server !== null) for (const [key, value] of Object.entries(describeServer(server))) span.setAttribute(key, value);
  if (zxid !== null) span.setAttribute('zookeeper.zxid', `0x${zxid.toString(16)}`);
  if (error instanceof Error) {
    const code = 'code' in error ? String(error.code) : error.name;
    span.setAttribute('error.type', code);
    if ('errorCode' in error && typeof error.errorCode === 'number') {
      span.setAttribute('db.response.status_code', String(error.errorCode));
    }
    span.setStatus({ code: ERROR, message: error.message });
    span.recordException(error);
  }
  span.end();
}

/** SpanKind.CLIENT */
const CLIENT = 2;
/** SpanStatusCode.ERROR */
const ERROR = 2;
