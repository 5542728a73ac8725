import { ZooKeeperError } from '../zookeeper-error.ts';

/**
 * The codec cannot decode the data of a znode. `cause` is the codec's error.
 *
 * @example
 * const value = await client.get('/config', { codec: json() }).catch((error) => {
 *   if (error instanceof DecodeError) console.log(`unreadable: ${Buffer.from(error.data ?? []).toString('hex')}`);
 *   throw error;
 * });
 */
export class DecodeError extends ZooKeeperError {
  declare readonly code: 'DECODEFAILED';
  /** The data of the znode. */
  readonly data: Uint8Array | null;

  constructor(operation: string, path: string | null, data: Uint8Array | null, cause: unknown) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    super({ operation, path, detail, cause }, 'DECODEFAILED');
    this.data = data;
  }
}

Object.defineProperty(DecodeError.prototype, 'name', { value: 'DecodeError', configurable: true, writable: true });
