import type { Client, CreateShape, Stat, Transaction, TransactionResult } from '@meerkat/client';

/** One operation of a transaction, as a file has it. */
export type Operation = {
  readonly path: string /** Where it stands, to people: `line 3`. */;
  readonly origin: string;
} & (
  | { readonly kind: 'check' | 'delete'; readonly version: number | undefined }
  | { readonly kind: 'create'; readonly data: Uint8Array; readonly shape: CreateShape }
  | { readonly kind: 'set'; readonly data: Uint8Array; readonly version: number | undefined }
);

/** What has become of an operation. */
export interface Outcome {
  /** From 1. */
  readonly number: number;
  readonly kind: Operation['kind'];
  /** Of a create: with the number that the server has appended. */
  readonly path: string;
  /** null for a check or a delete, and for a create on a server before 3.8.1. */
  readonly stat: Stat | null;
}

export function makeTransaction(client: Client, operations: readonly Operation[]): Transaction<TransactionResult[]> {
  const transaction: Transaction<TransactionResult[]> = client.transaction();
  for (const operation of operations) {
    switch (operation.kind) {
      case 'check':
        transaction.check(operation.path, { version: operation.version });
        break;
      case 'delete':
        transaction.delete(operation.path, { version: operation.version });
        break;
      case 'set':
        transaction.set(operation.path, operation.data, { version: operation.version });
        break;
      case 'create':
        transaction.create(operation.path, operation.data, operation.shape);
        break;
    }
  }
  return transaction;
}

export function outcomeOf({ kind, path }: Operation, result: TransactionResult | undefined, index: number): Outcome {
  const number = index + 1;
  if (result == null) return { number, kind, path, stat: null };
  return 'path' in result
    ? { number, kind, path: result.path, stat: result.stat }
    : { number, kind, path, stat: result };
}
