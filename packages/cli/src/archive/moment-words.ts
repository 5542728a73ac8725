import { type Moment, parseMoment } from '@meerkat/server/archive';
import { InvocationFailure } from '../run/command-failure.ts';

/** @throws InvocationFailure when it is neither a zxid nor a time */
export function momentOf(text: string | undefined, option: string): Moment | null {
  if (text === undefined) return null;
  const moment = parseMoment(text, Date.now());
  if (moment !== null) return moment;
  throw new InvocationFailure(
    `${option}: "${text}" is neither a zxid (0x100000004d) nor a time (2025-03-01T14:05:00Z, 14:05, "10m ago")`,
  );
}
