import type { HttpTls } from './options.ts';
import type { PastFiles } from './past/messages.ts';

/* What the thread of the HTTP servers and the thread of the service say to each other. */

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
}

/** What the HTTP thread is told when it starts. */
export interface HttpThreadData {
  readonly admin: AdminPlace | null;
  readonly metrics: readonly MetricsPlace[];
  /** `HttpFigures`. */
  readonly figures: SharedArrayBuffer;
  /** null: there is no console. */
  readonly console: ConsolePlace | null;
}

/** What the console on the admin port shows: the service at this port of clients. */
export interface ConsolePlace {
  readonly service: ListenPlace;
  readonly isWritable: boolean;
  /** Of the server. */
  readonly files: PastFiles;
}

export interface AdminPlace extends ListenPlace {
  /** Where ZooKeeper's commands are: `/commands`. */
  readonly commandUrl: string;
  readonly idleTimeoutMs: number;
  /** Null: plain HTTP. */
  readonly tls: HttpTls | null;
}

export interface MetricsPlace extends ListenPlace {
  readonly name: Exclude<HttpPort, 'admin'>;
  readonly tls: HttpTls | null;
}

export type HttpPort = 'admin' | 'metrics' | 'secure-metrics';

/** What somebody wants to know, or to be done. */
export type Question =
  | {
      readonly kind: 'command';
      readonly method: string;
      readonly name: string;
      readonly query: Readonly<Record<string, string>>;
      /** The header of that name; null when there is none. */
      readonly authorization: string | null;
      /** Where the caller is, as text. */
      readonly remote: string;
      /** X-Forwarded-For; null when there is none. */
      readonly forwardedFor: string | null;
      /** The certificate that the caller has shown, in DER, checked; null when it has shown none. */
      readonly certificate: Uint8Array | null;
      readonly hasBody: boolean;
    }
  /** What came of an upload that an answer has asked for. */
  | { readonly kind: 'uploaded'; readonly uploaded: Uploaded }
  | { readonly kind: 'metrics' }
  | { readonly kind: 'health' }
  /** The last one that is applied, which no leader takes back. */
  | { readonly kind: 'last-zxid' }
  | { readonly kind: 'index' }
  | { readonly kind: 'openapi' };

/** The beginning of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The body is this file; there are no parts then. */
  readonly file: string | null;
  /** Only these bytes of the file. */
  readonly filePart?: FilePart;
  /** The body of the request is to be received first; what comes of it is the next question. */
  readonly upload?: RestoreUpload;
}

/** A snapshot is expected. */
export interface RestoreUpload {
  /** Where it is written; what is there already is replaced. */
  readonly path: string;
  /** Room that it leaves on the disk. */
  readonly freeBytesMin: number;
  /** Bytes that it may have, unpacked. */
  readonly bytesMax: number;
}

/** It is there, synced and whole, and nothing in it is later than this; or why not. */
export type Uploaded = { readonly zxid: number } | { readonly fault: string };

export interface FilePart {
  readonly from: number;
  /** Fewer only at the end of the file. */
  readonly length: number;
}

export type ToService =
  | { readonly kind: 'listening'; readonly port: HttpPort; readonly at: ListenPlace; readonly scheme: string }
  | { readonly kind: 'failed'; readonly port: HttpPort; readonly at: ListenPlace; readonly reason: string }
  /** About certificates and handshakes. */
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly text: string }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  /** Parts of an answer have been taken: as many more may come. */
  | { readonly kind: 'taken'; readonly id: number; readonly parts: number }
  /** Nobody wants the rest of the answer. */
  | { readonly kind: 'drop'; readonly id: number };

export type ToHttp =
  | { readonly kind: 'head'; readonly id: number; readonly head: AnswerHead }
  | { readonly kind: 'part'; readonly id: number; readonly text: string; readonly isLast: boolean };

/** Parts of an answer that may be on their way. */
export const PARTS_MAX = 4;
