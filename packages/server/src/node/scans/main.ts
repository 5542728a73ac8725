import { parentPort, workerData } from 'node:worker_threads';
import type { ScanThreadData } from './messages.ts';
import { ScanThread } from './scan-thread.ts';

/* The entry of a thread that looks through files ahead of the core. */

if (parentPort === null) throw new Error('this file is the entry of a thread');
new ScanThread(parentPort, (workerData as ScanThreadData).bell).start();
