import { OpCode } from '@meerkat/protocol';
import { Bytes, replyBytes } from './scripted-server.ts';

export const GET_A = { op: OpCode.getData, path: '/a', watch: false } as const;
export const SET_A = { op: OpCode.setData, path: '/a', data: new Uint8Array([1]), version: -1 } as const;
export const ADD_RECURSIVE = { op: OpCode.addWatch, path: '/a', mode: 1 } as const;
export const ADD_PERSISTENT = { op: OpCode.addWatch, path: '/a', mode: 0 } as const;

/** Of a getData. */
export function dataReply(xid: number, zxid: number, text = 'hi'): Uint8Array {
  return replyBytes(xid, zxid, 0, new Bytes().text(text).stat(zxid));
}
