/** Counters of one server since its start or the last `reset` (ServerStats). Latencies in milliseconds. */
export class ServerStats {
  packetsReceived = 0;
  packetsSent = 0;
  latencyMin = 0;
  latencyMax = 0;
  latencyTotal = 0;
  latencyCount = 0;
  /** Bytes of the last, smallest and largest reply, without the length prefix; −1 before the first. */
  responseBytesLast = -1;
  responseBytesMin = -1;
  responseBytesMax = -1;
  connectionsRefused = 0;
  authFailures = 0;

  onReply(latencyMs: number, bytes: number): void {
    this.packetsSent++;
    if (this.latencyCount === 0 || latencyMs < this.latencyMin) this.latencyMin = latencyMs;
    if (latencyMs > this.latencyMax) this.latencyMax = latencyMs;
    this.latencyTotal += latencyMs;
    this.latencyCount++;
    this.responseBytesLast = bytes;
    if (this.responseBytesMin < 0 || bytes < this.responseBytesMin) this.responseBytesMin = bytes;
    if (bytes > this.responseBytesMax) this.responseBytesMax = bytes;
  }

  get latencyAverage(): number {
    return this.latencyCount === 0 ? 0 : this.latencyTotal / this.latencyCount;
  }

  reset(): void {
    this.packetsReceived = 0;
    this.packetsSent = 0;
    this.latencyMin = 0;
    this.latencyMax = 0;
    this.latencyTotal = 0;
    this.latencyCount = 0;
    this.responseBytesLast = -1;
    this.responseBytesMin = -1;
    this.responseBytesMax = -1;
    this.connectionsRefused = 0;
    this.authFailures = 0;
  }
}
