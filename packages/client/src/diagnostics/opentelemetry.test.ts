import { TestServer } from '@meerkat/testing';
import * as api from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import { connect } from '../connect.ts';
import { instrument, instrumentIfRegistered } from './opentelemetry.ts';
import { isTraced, traceRequest } from './trace-request.ts';

const TARGET = { host: 'zk1', port: 2181, address: '10.0.0.1' };

afterEach(() => {
  api.trace.disable();
  api.context.disable();
});

test('a request is a CLIENT span with the names of the semantic conventions, below the active span', async () => {
  const exporter = registerSdk();
  using _instrumentation = instrument(api);
  const tracer = api.trace.getTracer('test');

  await tracer.startActiveSpan('parent', async (parent) => {
    await traceRequest({ operation: 'get', path: '/a' }, { server: TARGET, lastZxid: 0x1_0000_0007 }, async () => 1);
    parent.end();
  });

  const [span, parent] = exporter.getFinishedSpans();
  expect(span).toMatchObject({
    name: 'zookeeper get',
    kind: api.SpanKind.CLIENT,
    status: { code: api.SpanStatusCode.UNSET },
    parentSpanContext: { spanId: parent?.spanContext().spanId },
    attributes: {
      'db.system.name': 'zookeeper',
      'db.operation.name': 'get',
      'zookeeper.path': '/a',
      'zookeeper.zxid': '0x100000007',
      'server.address': 'zk1',
      'server.port': 2181,
      'network.peer.address': '10.0.0.1',
      'network.peer.port': 2181,
    },
  });
});

test('connect creates spans automatically once an SDK is registered; a failure has its code', async () => {
  await instrumentIfRegistered();
  expect(isTraced()).toBe(false);
  const exporter = registerSdk();
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);

  await client.get('/nowhere').catch(() => undefined);

  // A second client creates no second span.
  await using other = await connect(server.connectString);
  await other.exists('/nowhere');
  const [failed, found, ...others] = exporter.getFinishedSpans();
  expect(failed).toMatchObject({
    name: 'zookeeper get',
    status: { code: api.SpanStatusCode.ERROR, message: expect.stringContaining('get /nowhere: ') },
    attributes: { 'error.type': 'NONODE', 'db.response.status_code': '-101', 'server.port': server.port },
    events: [{ name: 'exception' }],
  });
  expect(found).toMatchObject({ name: 'zookeeper exists', status: { code: api.SpanStatusCode.UNSET } });
  expect(others).toEqual([]);
});

test('a second instrumentation replaces the first, and disposing of it ends the spans', async () => {
  const exporter = registerSdk();
  const first = instrument(api);
  const second = instrument(api);
  const request = { operation: 'sync', path: null };

  await traceRequest(request, { server: null, lastZxid: 0 }, async () => null);
  first[Symbol.dispose]();
  await traceRequest(request, { server: null, lastZxid: 0 }, async () => null);
  second[Symbol.dispose]();

  expect(exporter.getFinishedSpans()).toHaveLength(2);
  expect(isTraced()).toBe(false);
});

/** An SDK as registered by an application, with an in-memory exporter. */
function registerSdk(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  api.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return exporter;
}
