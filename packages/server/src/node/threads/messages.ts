/* What the thread of the core and its I/O threads say to each other beside the rings: seldom, and never about a connection. */
import type { PeerAddress, RingPair } from '@meerkat/core';
import type { SentTlsSettings } from '../../tls/tls-settings.ts';
import type { ListenOptions } from '../network.ts';

/** The worker data of an I/O thread. */
export interface IoThreadData {
  readonly rings: RingPair;
  /** See `SharedCounts`. */
  readonly counts: SharedArrayBuffer;
  /** Which of the threads it is, from 0 on. */
  readonly thread: number;
  /** Connections of clients, of all threads together. */
  readonly clientsMax: number;
}

/** A port that all I/O threads listen on. */
export interface ThreadPort extends Pick<ListenOptions, 'host' | 'port' | 'backlog' | 'keepAlive'> {
  readonly number: number;
  /** Other threads listen on it as well. */
  readonly isShared: boolean;
  /** null: no TLS. */
  readonly tls: ThreadTls | null;
}

export interface ThreadTls {
  readonly settings: SentTlsSettings;
  readonly isUnified: boolean;
  readonly perHostMax: number;
}

/** null: the rings have something. */
export type ToThread =
  | null
  | { readonly kind: 'listen'; readonly port: ThreadPort }
  | { readonly kind: 'renew'; readonly port: number; readonly settings: SentTlsSettings }
  | { readonly kind: 'close' | 'destroyAll' | 'freeze' | 'thaw'; readonly port: number };

/** null: the rings have something. */
export type ToServer =
  | null
  | { readonly kind: 'listening'; readonly port: number; readonly at: { readonly host: string; readonly port: number } }
  | { readonly kind: 'failed'; readonly port: number; readonly code: string | undefined; readonly message: string };

/** What an I/O thread notes in its ring, as JSON: things that strangers can cause in any number. */
export type ThreadNote =
  | {
      readonly kind: 'handshake-failed';
      readonly port: number;
      readonly remote: NotedAddress;
      readonly reason: string;
      readonly isAuthentication: boolean;
    }
  | {
      readonly kind: 'handshakes-exceeded';
      readonly port: number;
      readonly remote: NotedAddress;
      readonly reason: string;
    }
  | { readonly kind: 'warning'; readonly message: string }
  /** A client has come that is one too many. */
  | { readonly kind: 'crowded' };

export type NotedAddress = Omit<PeerAddress, 'ip'> & { readonly ip: readonly number[] };
