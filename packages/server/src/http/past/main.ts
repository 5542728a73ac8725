import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Zxid } from '@meerkat/protocol';
import { hexZxid } from '@meerkat/protocol';
import { ArchiveError } from '../../archive/archive-error.ts';
import { DirectoryFiles } from '../../archive/directory-files.ts';
import { readSpan, readStates, rebuildMoment } from '../../archive/past-reading.ts';
import { PastService } from '../../archive/past-service.ts';
import { BoundedFiles } from './bounded-files.ts';
import { type PastAnswer, type PastThreadData, STREAM_OPEN } from './messages.ts';

/* A thread that reads the past of the server that it is in, and ends. A tree stays until it is ended. */

if (parentPort === null) throw new Error('this file is the entry of a thread');
const parent = parentPort;
giveWay();
void answer(workerData as PastThreadData).then((found) => parent.postMessage(found));

/** On Linux this is said of one thread: that of the service goes first. */
function giveWay(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(PRIORITY);
  } catch {
    // Then it does not.
  }
}

async function answer({ files: place, committed, question }: PastThreadData): Promise<PastAnswer> {
  let files: BoundedFiles | null = null;
  try {
    files = new BoundedFiles(await DirectoryFiles.open(place.snapshotDirectory, place.logDirectory), {
      committed: committed as Zxid,
      bufferBytesMax: question.kind === 'tree' ? TREE_BYTES_MAX : Number.POSITIVE_INFINITY,
      bufferBytes: () => process.memoryUsage().arrayBuffers,
    });
    switch (question.kind) {
      case 'span':
        return { kind: 'span', span: await readSpan(files) };
      case 'states':
        return { kind: 'states', found: { ...(await readStates(files, question.path, question.addresses)) } };
      case 'tree':
        return { kind: 'tree', tree: await openTree(files, question.moment) };
    }
  } catch (error) {
    if (files?.isExceeded === true) return { kind: 'too-large' };
    if (error instanceof ArchiveError) return { kind: 'failed', fault: error.fault, text: error.message };
    throw error;
  }
}

async function openTree(files: BoundedFiles, moment: string) {
  const rebuilt = await rebuildMoment(files, moment);
  if (rebuilt === null) return null;
  const service = await PastService.start(rebuilt);
  parent.on('message', (port: MessagePort) => serve(service, port));
  return { zxid: hexZxid(rebuilt.zxid), atMs: rebuilt.timeMs };
}

function serve(service: PastService, port: MessagePort): void {
  const stream = service.connect({
    onOpen: () => port.postMessage(STREAM_OPEN),
    onBytes: (chunk) => port.postMessage(chunk),
    onClosed: () => port.close(),
  });
  port.on('message', (bytes: Uint8Array) => stream.write(bytes));
  port.on('close', () => stream.destroy());
}

/** Of a tree while it is rebuilt. The service that shows it has it three times for a moment, and once and a half then. */
const TREE_BYTES_MAX = 128 << 20;
/** A tenth of what the others get where there are too few processors. */
const PRIORITY = 10;
