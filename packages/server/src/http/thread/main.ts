import { parentPort, workerData } from 'node:worker_threads';
import type { FastifyInstance } from 'fastify';
import { HttpFigures } from '../figures.ts';
import type { AdminPlace, HttpThreadData } from '../messages.ts';
import { makeAdminApp } from './admin-app.ts';
import { keepOpening } from './listen.ts';
import { MetricsReader, makeMetricsApp } from './metrics-app.ts';
import { ServiceThread } from './service-thread.ts';

/* The thread of the HTTP servers: HTTP is parsed, checked and written here, not in the thread that serves clients. */

const { admin, metrics, console, figures: buffer } = workerData as HttpThreadData;
const figures = new HttpFigures(buffer);
if (parentPort === null) throw new Error('this file is the entry of a thread');
const service = new ServiceThread(parentPort);
const metricsReader = new MetricsReader(service);
if (admin !== null) void openAdminPort(admin);
for (const { name, tls, ...at } of metrics) {
  void keepOpening(() => makeMetricsApp(metricsReader), { port: name, at, tls }, service, figures);
}

async function openAdminPort(at: AdminPlace): Promise<void> {
  const { tls, idleTimeoutMs } = at;
  await keepOpening(() => makeWholeAdminApp(at), { port: 'admin', at, tls, idleTimeoutMs }, service, figures);
}

async function makeWholeAdminApp(at: AdminPlace): Promise<FastifyInstance> {
  const app = makeAdminApp(at, service, metricsReader);
  // Loaded where it is wanted: it brings the client.
  if (console !== null) await (await import('./console-mount.ts')).mountConsole(app, console, service);
  return app;
}
