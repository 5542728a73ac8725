import type { Disk } from '@meerkat/core';
import type { TurnDisk } from './turn.ts';

/** A disk together with what the host of a server asks of it. */
export interface HostedDisk extends Disk, TurnDisk {
  /**
   * The server has ended without finishing. What takes place now ends, nothing else begins, files are closed, and holds
   * are released. After a server that has stopped properly there is nothing left to do.
   *
   * @returns once nothing takes place any more, so that another server may have the directories
   */
  abandon(): Promise<void>;
}
