/** A keytab with one AES-256 key in the realm R, following MIT's documentation of the format. */
export function keytabOf(name: string, host: string, key: string): Buffer {
  const data = (text: string): Buffer => Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)]);
  const entry = Buffer.concat([
    Buffer.from([0, 2]),
    ...['R', name, host].map(data),
    Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 18]),
    data(key),
  ]);
  return Buffer.concat([Buffer.from([5, 2, 0, 0, 0, entry.length]), entry]);
}
