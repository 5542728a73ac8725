/** Bytes of the txns that a leader has proposed, headers included (BufferStats); −1 before the first. */
export class ProposalSizes {
  last = -1;
  min = -1;
  max = -1;

  onProposed(bytes: number): void {
    this.last = bytes;
    if (this.min < 0 || bytes < this.min) this.min = bytes;
    if (bytes > this.max) this.max = bytes;
  }

  reset(): void {
    this.last = -1;
    this.min = -1;
    this.max = -1;
  }
}
