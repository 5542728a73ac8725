declare module 'snappyjs' {
  export function uncompress(bytes: Uint8Array, lengthMax?: number): Uint8Array;
}
