import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type FileScan, SCAN_BYTES_MAX, SCAN_MEMORY_BYTES, type ScannedChunk } from '@meerkat/core';
import { ADLER_START, adler32, ENTRY_FRAME_BYTES, ENTRY_HEAD_BYTES, logHeader } from '@meerkat/core/files';
import type { Zxid } from '@meerkat/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { NODE_CLOCK } from '../clock.ts';
import { Turn } from '../turn.ts';
import { CHUNK_BYTES, CHUNK_RECORDS_MAX, CHUNKS_MAX } from './messages.ts';
import { NodeScans, type NodeScansOptions } from './node-scans.ts';

const ENTRIES = 12_000;
const PAYLOAD_BYTES = 1500;
const HEADER_BYTES = 16;
const END = HEADER_BYTES + ENTRIES * (PAYLOAD_BYTES + ENTRY_FRAME_BYTES);

let directory = '';
let path = '';
let file: Uint8Array;
let turn: Turn;
let scans: NodeScans;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-scans-'));
  path = join(directory, 'log.1');
  file = new Uint8Array(END + 100_000);
  file.set(logHeader(0 as Zxid));
  const view = new DataView(file.buffer);
  for (let at = HEADER_BYTES, i = 0; at < END; at += PAYLOAD_BYTES + ENTRY_FRAME_BYTES, i++) {
    const payload = at + ENTRY_HEAD_BYTES;
    file.fill(1 + (i % 250), payload, payload + PAYLOAD_BYTES);
    view.setUint32(at + 4, adler32(ADLER_START, file, payload, payload + PAYLOAD_BYTES));
    view.setUint32(at + 8, PAYLOAD_BYTES);
    file[payload + PAYLOAD_BYTES] = 0x42;
  }
  writeFileSync(path, file);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

beforeEach(() => {
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  const core = { onTurnEnd() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY, onTick() {} };
  turn.start(core, { startEffects: () => false });
});

afterEach(() => {
  scans.stop();
  turn.stop();
});

class Reader {
  readonly chunks: ScannedChunk[] = [];
  entries = 0;
  end = HEADER_BYTES;
  readonly scan: FileScan;
  readonly ended: Promise<void>;
  onChunk: (chunk: ScannedChunk) => void = (chunk) => this.scan.release(chunk, false);

  constructor(options: Partial<NodeScansOptions> = {}, scannedPath: string = path) {
    scans = new NodeScans(turn, { bytesMin: 0, slicesBefore: 0, ...options });
    let onScanEnd = (): void => {};
    this.ended = new Promise((resolve) => {
      onScanEnd = resolve;
    });
    const onChunk = (chunk: ScannedChunk): void => {
      expect(chunk.position).toBe(this.end);
      expect(Buffer.compare(chunk.bytes.subarray(0, chunk.end), file.subarray(this.end, this.end + chunk.end))).toBe(0);
      this.entries += chunk.count;
      this.end += chunk.end;
      this.chunks.push(chunk);
      this.onChunk(chunk);
    };
    this.scan = scans.open(scannedPath, 'log', file.length, { onChunk, onScanEnd })!;
  }

  async start(): Promise<void> {
    await vi.waitFor(() => expect(this.scan.canStart()).toBe(true), { timeout: 20_000, interval: 5 });
    this.scan.start(HEADER_BYTES, file.length, 0);
  }
}

describe('a thread that looks through a file', () => {
  test('hands over all entries unchanged and in order, and ends behind the last one', async () => {
    const reader = new Reader();
    await reader.start();
    await reader.ended;
    expect(reader.entries).toBe(ENTRIES);
    expect(reader.end).toBe(END);
  });

  test('holds no more memory than it may, however long it waits for the reader', async () => {
    expect(CHUNKS_MAX * (CHUNK_BYTES + 20 * CHUNK_RECORDS_MAX + SCAN_MEMORY_BYTES)).toBeLessThanOrEqual(SCAN_BYTES_MAX);
    const reader = new Reader();
    const held: ScannedChunk[] = [];
    const memories = new Set<ArrayBufferLike>();
    reader.onChunk = (chunk) => {
      held.push(chunk);
      memories.add(chunk.bytes.buffer);
      expect(held.length).toBeLessThanOrEqual(CHUNKS_MAX);
      // Only when all of them are here, one goes back: the next that comes has its memory.
      if (held.length === CHUNKS_MAX || reader.end > END - CHUNKS_MAX * CHUNK_BYTES)
        reader.scan.release(held.shift()!, false);
    };
    await reader.start();
    await reader.ended;
    expect(reader.entries).toBe(ENTRIES);
    expect(reader.chunks.length).toBeGreaterThan(2 * CHUNKS_MAX);
  });

  test('is not started for a short file, nor before the core has read some slices itself', async () => {
    const spawn = vi.fn<NodeScansOptions['spawn']>(() => {
      throw new Error('not expected yet');
    });
    scans = new NodeScans(turn, { bytesMin: 1000, slicesBefore: 2, spawn });
    const events = { onChunk() {}, onScanEnd() {} };
    expect(scans.open(path, 'log', 999, events)).toBeNull();
    const scan = scans.open(path, 'log', 1000, events)!;
    expect([scan.canStart(), scan.canStart()]).toEqual([false, false]);
    expect(spawn).not.toHaveBeenCalled();
    expect(scan.canStart(), 'no scan when the thread cannot be started').toBe(false);
    expect(spawn).toHaveBeenCalledTimes(1);
    expect(scan.canStart()).toBe(false);
    expect(spawn).toHaveBeenCalledTimes(1);
  });

  test('that dies leaves the rest of the file to the core', async () => {
    let worker: Worker | null = null;
    const real = new URL('../../../dist/node/scans/main.js', import.meta.url);
    const reader = new Reader({
      spawn: (workerData) => {
        worker = new Worker(real, { workerData, execArgv: [] });
        return worker;
      },
    });
    // None goes back, so that it is in the middle of the file.
    reader.onChunk = () => {
      if (reader.chunks.length === CHUNKS_MAX) void worker?.terminate();
    };
    await reader.start();
    await reader.ended;
    expect(reader.chunks.length).toBe(CHUNKS_MAX);
    expect(reader.scan.canStart()).toBe(false);
  });

  test('that cannot open the file leaves all of it to the core', async () => {
    const reader = new Reader({}, join(directory, 'log.2'));
    await reader.start();
    await reader.ended;
    expect(reader.chunks).toEqual([]);
  });

  test('looks through one file after the other, and is not told of one that was closed', async () => {
    const reader = new Reader();
    await reader.start();
    await reader.ended;
    let chunks = 0;
    const again = scans.open(path, 'log', file.length, { onChunk: () => chunks++, onScanEnd() {} })!;
    expect(again.canStart(), 'the thread is there').toBe(true);
    again.start(HEADER_BYTES, file.length, 0);
    await vi.waitFor(() => expect(chunks).toBe(CHUNKS_MAX), { timeout: 20_000, interval: 5 });
    again.close();
    const third = new Promise<void>((resolve) => {
      const scan = scans.open(path, 'log', file.length, {
        onChunk: (chunk) => scan.release(chunk, true),
        onScanEnd: resolve,
      })!;
      void vi
        .waitFor(() => expect(scan.canStart()).toBe(true), { timeout: 20_000, interval: 5 })
        .then(() => scan.start(HEADER_BYTES, file.length, 0));
    });
    await third;
    expect(chunks).toBe(CHUNKS_MAX);
  });
});
