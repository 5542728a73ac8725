import { Worker } from 'node:worker_threads';
import { isSingleFile, threadScript } from '../single-file.ts';
import type { TlsOptions } from './options.ts';
import { StoreError } from './stores.ts';
import { type SentTlsSettings, type TlsSettings, withContext } from './tls-settings.ts';

export interface StoreQuestion {
  readonly options: TlsOptions;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

export type StoreAnswer = { readonly settings: SentTlsSettings } | { readonly fault: string };

/**
 * As `readTlsSettings`, in a thread that is started for it: to derive the key of a PKCS12 file or of an encrypted key may take
 * longer than a server may stand still.
 *
 * @throws StoreError; another error when the thread has ended without an answer
 */
export async function readInThread(options: TlsOptions, nowMs: number): Promise<TlsSettings> {
  const question: StoreQuestion = { options, nowMs };
  const isSingle = isSingleFile();
  const worker = new Worker(isSingle ? threadScript('store-thread') : entry(), {
    eval: isSingle,
    workerData: question,
    name: 'meerkat-stores',
    // Options of the process, such as a profiler, are not for this thread.
    execArgv: [],
  });
  const answer = await new Promise<StoreAnswer>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread that reads the stores has ended: exit code ${code}`)));
  });
  if ('fault' in answer) throw new StoreError(answer.fault);
  return withContext(answer.settings);
}

/** Sources cannot be run by a thread of every Node.js: then it is what was built of them. */
function entry(): URL {
  const here = import.meta.url;
  return here.endsWith('.ts')
    ? new URL(here.replace(/\/src\/tls\/[^/]*$/, '/dist/tls/store-thread.js'))
    : new URL('./store-thread.js', here);
}
