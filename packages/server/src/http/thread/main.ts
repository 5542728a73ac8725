import { parentPort, workerData } from 'node:worker_threads';
import type { AdminPlace, HttpThreadData } from '../messages.ts';
import { makeAdminApp } from './admin-app.ts';
import { listen } from './listen.ts';
import { makeMetricsApp } from './metrics-app.ts';
import { ServiceThread } from './service-thread.ts';

/* The thread of the HTTP servers: whatever comes in by HTTP is read, checked and written here, not in the thread that serves clients. */

const { admin, metrics, console } = workerData as HttpThreadData;
if (parentPort === null) throw new Error('this file is the entry of a thread');
const service = new ServiceThread(parentPort);
if (admin !== null) void openAdminPort(admin);
if (metrics !== null) void listen(makeMetricsApp(service), 'metrics', metrics, service);

async function openAdminPort(at: AdminPlace): Promise<void> {
  const app = makeAdminApp(at, service);
  // Loaded where it is wanted: it brings the client.
  if (console !== null) await (await import('./console-mount.ts')).mountConsole(app, console);
  await listen(app, 'admin', at, service, at.idleTimeoutMs);
}
