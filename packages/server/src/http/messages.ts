import type { HttpTls } from './options.ts';
import type { PastFiles } from './past/messages.ts';

/* Messages between the thread of the HTTP servers and the thread of the service. */

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
}

/** The worker data of the HTTP thread. */
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

/** A request to the thread of the service. */
export type Question =
  | {
      readonly kind: 'command';
      readonly method: string;
      readonly name: string;
      readonly query: Readonly<Record<string, string>>;
      /** The Authorization header. */
      readonly authorization: string | null;
      /** The address of the caller, as text. */
      readonly remote: string;
      /** The X-Forwarded-For header. */
      readonly forwardedFor: string | null;
      /** The verified certificate of the caller, in DER; null without one. */
      readonly certificate: Uint8Array | null;
      readonly hasBody: boolean;
    }
  /** The result of an upload that an answer has asked for. */
  | { readonly kind: 'uploaded'; readonly uploaded: Uploaded }
  | { readonly kind: 'metrics' }
  | { readonly kind: 'health' }
  /** The last applied zxid; no leader truncates it. */
  | { readonly kind: 'last-zxid' }
  | { readonly kind: 'index' }
  | { readonly kind: 'openapi' };

/** The beginning of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The body is this file, and there are no parts. */
  readonly file: string | null;
  /** Only these bytes of the file. */
  readonly filePart?: FilePart;
  /** The body of the request is to be received first; the result is sent as an `uploaded` question. */
  readonly upload?: RestoreUpload;
}

/** A snapshot is expected. */
export interface RestoreUpload {
  /** Where it is written; an existing file is replaced. */
  readonly path: string;
  /** Bytes that must stay free on the disk. */
  readonly freeBytesMin: number;
  /** Maximum size, unpacked. */
  readonly bytesMax: number;
}

/** The snapshot is complete and synced, and holds no later txn than `zxid`; or why it was rejected. */
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
  /** Flow control: parts of an answer were consumed, as many more may be sent. */
  | { readonly kind: 'taken'; readonly id: number; readonly parts: number }
  /** The rest of the answer is not needed. */
  | { readonly kind: 'drop'; readonly id: number };

export type ToHttp =
  | { readonly kind: 'head'; readonly id: number; readonly head: AnswerHead }
  | { readonly kind: 'part'; readonly id: number; readonly text: string; readonly isLast: boolean };

/** Parts of an answer that may be on their way. */
export const PARTS_MAX = 4;
