import { type OpenPast, openPastService, type PastOptions } from '@meerkat/console/past';
import { PastService, type Rebuilt } from '@meerkat/server/archive';

/** A client of a service in this process with a past state. The database cannot be used for anything else afterwards. */
export async function openPast(rebuilt: Rebuilt, options: PastOptions): Promise<OpenPast> {
  return await openPastService(await PastService.start(rebuilt), options);
}
