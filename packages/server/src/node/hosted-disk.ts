import type { Disk } from '@meerkat/core';
import type { TurnDisk } from './turn.ts';

/** A disk together with what the host of a server asks of it. */
export interface HostedDisk extends Disk, TurnDisk {
  /**
   * The server has ended abruptly. Effects in progress are finished, no other one starts, files are closed, and holds
   * are released. Nothing to do after a graceful stop.
   *
   * @returns once no effect is in progress, so that another server may use the directories
   */
  abandon(): Promise<void>;
}
