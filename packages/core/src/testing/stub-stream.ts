import type { ByteStream } from '../base/ports.ts';

/** A stream whose other end is the test. */
export class StubStream implements ByteStream {
  readonly remote = { ip: new Uint8Array(4), host: 'peer', port: 1 };
  queuedBytes = 0;
  readonly written: number[] = [];
  readonly calls: string[] = [];

  write(bytes: Uint8Array): void {
    for (const byte of bytes) this.written.push(byte);
  }
  end(): void {
    this.calls.push('end');
  }
  destroy(): void {
    this.calls.push('destroy');
  }
  pause(): void {
    this.calls.push('pause');
  }
  resume(): void {
    this.calls.push('resume');
  }
}
