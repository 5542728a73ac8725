import { type OpenPast, openPastService } from '@meerkat/console/past';
import { PastService, type Rebuilt } from '@meerkat/server/archive';

/** A client of a service in this process that is as a service was. Takes the database over: it is of no use to anybody else afterwards. */
export async function openPast(rebuilt: Rebuilt, options: { chroot?: string; signal: AbortSignal }): Promise<OpenPast> {
  return await openPastService(await PastService.start(rebuilt), options);
}
