/** What both servers of the comparison have in their `zoo.cfg`. */
export const DIFFERENTIAL_CONFIG: Readonly<Record<string, string | number | boolean>> = {
  // No session may expire while the script runs: each server would do it at another moment.
  minSessionTimeout: 4_000_000,
  maxSessionTimeout: 7_000_000,
  enforceQuota: true,
};
