/** Encoded length of a text, without its length field. */
export type TextMeasure = (text: string) => number;

/** As `JuteWriter` encodes it. */
export function textBytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 0x7f) continue;
    // Each half of a surrogate pair counts two of four bytes; a lone one becomes U+FFFD, three bytes.
    if (code < 0x800) bytes++;
    else if (isPairAt(text, i)) {
      bytes += 2;
      i++;
    } else bytes += 2;
  }
  return bytes;
}

/** Upper bound of `textBytes`, without reading the text. */
export function textBytesAtMost(text: string): number {
  return 3 * text.length;
}

function isPairAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}
