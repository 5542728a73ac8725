import { Readable, Writable } from 'node:stream';
import { expect } from 'vitest';
import { parseCommand } from '../../packages/cli/src/program.ts';
import type { ServerProcess } from '../harness/server-process.ts';

/** The output of `meerkat doctor -o json`. */
export interface Diagnosis {
  readonly exitCode: number;
  readonly findings: readonly {
    readonly fault: string;
    readonly where: string;
    readonly found: string;
    readonly isNote: boolean;
  }[];
}

class Text extends Writable {
  text = '';

  override _write(chunk: Buffer, _: BufferEncoding, callback: () => void): void {
    this.text += chunk.toString();
    callback();
  }
}

/** How long to wait for a silent server. */
const PATIENCE = '2500ms';

/** Runs the command in this process. @param args servers, files and other options */
export async function diagnose(...args: readonly string[]): Promise<Diagnosis> {
  const [stdout, stderr] = [new Text(), new Text()];
  const io = { stdin: Readable.from([]), stdout, stderr, env: { HOME: '/nonexistent' } };
  const words = args.includes('--timeout') ? args : [...args, '--timeout', PATIENCE];
  const exitCode = await parseCommand(['doctor', ...words, '-o', 'json'], io);
  expect(stderr.text).toBe('');
  return { exitCode, findings: JSON.parse(stdout.text) };
}

/** The reported faults, without duplicates and notes. */
export async function faults(...args: readonly string[]): Promise<string[]> {
  const { findings } = await diagnose(...args);
  return [...new Set(findings.filter(({ isNote }) => !isNote).map(({ fault }) => fault))].sort();
}

export function at(...servers: readonly (ServerProcess | number | string)[]): readonly ['--server', string] {
  const places = servers.map((server) => {
    return typeof server === 'string' ? server : `127.0.0.1:${typeof server === 'number' ? server : server.port}`;
  });
  return ['--server', places.join(',')];
}
