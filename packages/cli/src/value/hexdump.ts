const ROW_BYTES = 16;

/** Bytes as `hexdump -C` shows them: offset, sixteen bytes in hex, and what of them is ASCII. Lines end with a line feed. */
export function hexdump(data: Uint8Array): string {
  const rows: string[] = [];
  for (let offset = 0; offset < data.length; offset += ROW_BYTES) {
    const row = data.subarray(offset, offset + ROW_BYTES);
    const digits = Array.from(row, (byte) => byte.toString(16).padStart(2, '0'));
    const left = digits.slice(0, ROW_BYTES / 2).join(' ');
    const right = digits.slice(ROW_BYTES / 2).join(' ');
    const ascii = Array.from(row, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${offset.toString(16).padStart(8, '0')}  ${left.padEnd(23)}  ${right.padEnd(23)}  |${ascii}|\n`);
  }
  return rows.join('');
}
