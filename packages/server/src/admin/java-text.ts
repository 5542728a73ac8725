import type { PeerAddress } from '@meerkat/core';
import { formatIp } from '../auth/ip-address.ts';

/* How Java prints what the four-letter words show. */

/** `Double.toString` of a number rounded to four decimals: `0.0`, `1.4545`, `5.0E-4`. */
export function formatDouble(value: number): string {
  return formatJavaDouble(Math.round(value * 10_000) / 10_000);
}

/** `Double.toString` of a number as it is. */
export function formatJavaDouble(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return `${value}.0`;
  const size = Math.abs(value);
  if (!Number.isFinite(value) || (size >= 1e-3 && size < 1e7)) return String(value);
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${exponent.replace('+', '')}`;
}

/** A long in hexadecimal, negative numbers in two's complement. */
export function formatHex(value: bigint | number): string {
  return BigInt.asUintN(64, BigInt(value)).toString(16);
}

/** `Date.toString`: `EEE MMM dd HH:mm:ss zzz yyyy` in the local time zone. */
export function formatDate(wallMs: number): string {
  const parts = new Map(
    getDateFormat()
      .formatToParts(wallMs)
      .map(({ type, value }) => [type, value]),
  );
  const get = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  return `${get('weekday')} ${get('month')} ${get('day')} ${get('hour')}:${get('minute')}:${get('second')} ${get('timeZoneName')} ${get('year')}`;
}

/** `InetSocketAddress.toString` of an address without a name: `/127.0.0.1:51234`, `/[0:0:0:0:0:0:0:1]:51234`. */
export function formatRemote(remote: PeerAddress): string {
  const host = formatIp(remote.ip);
  return remote.ip.length === 4 ? `/${host}:${remote.port}` : `/[${host}]:${remote.port}`;
}

let dateFormat: Intl.DateTimeFormat | null = null;

/** Made when it is first needed: it costs 10 ms, which a start does not have. */
function getDateFormat(): Intl.DateTimeFormat {
  dateFormat ??= new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
    year: 'numeric',
  });
  return dateFormat;
}
