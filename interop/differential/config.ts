/** Settings in the `zoo.cfg` of both servers. */
export const DIFFERENTIAL_CONFIG: Readonly<Record<string, string | number | boolean>> = {
  // No session may expire while the script runs: the servers would expire it at different times.
  minSessionTimeout: 4_000_000,
  maxSessionTimeout: 7_000_000,
  enforceQuota: true,
};
