/** Bytes of a text without its length. */
export type TextMeasure = (text: string) => number;

/** As `JuteWriter` encodes it. */
export function textBytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 0x7f) continue;
    // Half of a pair is half of four bytes; alone it becomes U+FFFD, three bytes.
    if (code < 0x800) bytes++;
    else if (isPairAt(text, i)) {
      bytes += 2;
      i++;
    } else bytes += 2;
  }
  return bytes;
}

/** Not less than `textBytes`, without looking at the text. */
export function textBytesAtMost(text: string): number {
  return 3 * text.length;
}

function isPairAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}
