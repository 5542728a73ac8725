import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { countOpenFiles, readOpenFilesMax } from '../node/descriptors.ts';

/** One metric of this process. */
export interface ProcessMetric {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly labels?: string;
  readonly value: number;
}

/** The process metrics of Prometheus' client libraries; and the heap under the JVM's names, for existing alerts. */
export function* processMetrics(): Generator<ProcessMetric> {
  const { user, system } = process.cpuUsage();
  const { rss } = process.memoryUsage();
  yield counter('process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.', (user + system) / 1e6);
  yield gauge(
    'process_start_time_seconds',
    'Start time of the process since unix epoch in seconds.',
    Math.round(Date.now() / 1000 - process.uptime()),
  );
  yield gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', rss);
  const virtualBytes = readVirtualBytes();
  if (virtualBytes !== null) yield gauge('process_virtual_memory_bytes', 'Virtual memory size in bytes.', virtualBytes);
  yield gauge('process_open_fds', 'Number of open file descriptors.', countOpenFiles() ?? -1);
  yield gauge('process_max_fds', 'Maximum number of open file descriptors.', readOpenFilesMax() ?? -1);
  const heap = getHeapStatistics();
  const labels = '{area="heap"}';
  const used = 'Used bytes of a given memory area: the heap of JavaScript.';
  const max = 'Max bytes of a given memory area: the heap of JavaScript.';
  yield { ...gauge('jvm_memory_bytes_used', used, heap.used_heap_size), labels };
  yield { ...gauge('jvm_memory_bytes_max', max, heap.heap_size_limit), labels };
}

function gauge(name: string, help: string, value: number): ProcessMetric {
  return { name, type: 'gauge', help, value };
}

function counter(name: string, help: string, value: number): ProcessMetric {
  return { name, type: 'counter', help, value };
}

/** On Linux only. */
function readVirtualBytes(): number | null {
  try {
    const pages = readFileSync('/proc/self/statm', 'utf8').split(' ', 1)[0];
    return Number(pages) * PAGE_BYTES;
  } catch {
    return null;
  }
}

const PAGE_BYTES = 4096;
