import { parentPort, workerData } from 'node:worker_threads';
import type { StoreAnswer, StoreQuestion } from './store-reader.ts';
import { StoreError } from './stores.ts';
import { readTlsSettings, sendable } from './tls-settings.ts';

/* The entry of the thread that reads stores: one answer, and its end. */

const { options, nowMs } = workerData as StoreQuestion;
if (parentPort === null) throw new Error('this file is the entry of a thread');
const port = parentPort;
void answer().then((found) => port.postMessage(found));

async function answer(): Promise<StoreAnswer> {
  try {
    return { settings: sendable(await readTlsSettings(options, nowMs)) };
  } catch (error) {
    if (error instanceof StoreError) return { fault: error.message };
    throw error;
  }
}
