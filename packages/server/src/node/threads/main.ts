import { parentPort, workerData } from 'node:worker_threads';
import { IoThread } from './io-thread.ts';
import type { IoThreadData, ToThread } from './messages.ts';

/* The entry of an I/O thread. */

if (parentPort === null) throw new Error('this file is the entry of a thread');
const thread = new IoThread(workerData as IoThreadData, parentPort);
parentPort.on('message', (message: ToThread) => thread.onMessage(message));
