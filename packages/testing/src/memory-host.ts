import { MemoryDisk } from '@meerkat/core';
import type { HostedDisk } from '@meerkat/server';

/** A disk in memory, driven by the turns of a server. It outlives the server, as a disk outlives a process. */
export class MemoryHost extends MemoryDisk implements HostedDisk {
  startEffects(): boolean {
    // Only what is there now: what the completions ask for comes after the sockets have had their chance.
    const count = this.pendingCount;
    for (let i = 0; i < count; i++) this.deliver();
    return count > 0;
  }

  abandon(): Promise<void> {
    this.kill();
    return Promise.resolve();
  }
}
