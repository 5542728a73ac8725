/** The servers of a service. */
export const SERVERS_TEXTS = {
  servers: {
    title: 'Servers',
    roles: { leader: 'leader', follower: 'follower', observer: 'observer' },
    noLeader: 'No leader: nothing can be written.',
    away: 'away',
    columns: {
      server: 'Server',
      role: 'Role',
      zxid: 'Zxid',
      lag: 'Behind, txns',
      latency: 'Latency, avg/max ms',
      fsync: 'Sync of the log, avg/max ms',
      connections: 'Connections',
      outstanding: 'Outstanding',
      znodes: 'Znodes',
      version: 'Version',
      certificate: 'Certificate ends',
    },
    requests: 'Requests a second',
    latency: 'Latency, ms',
    lag: 'Txns behind',
    roleLine: 'Roles over time',
    restarts: {
      title: 'Restarts',
      some: (done: number, all: number): string =>
        `${done} of ${all} servers were restarted in the last ten minutes, as far as servers report. The others come below in the order of a rolling restart: the leader last.`,
      all: (all: number): string => `All ${all} servers were restarted in the last ten minutes.`,
      state: 'State',
      states: { restarted: 'restarted', away: 'away now', due: 'to come' },
      since: 'Runs since',
      before: 'Version before',
      now: 'Version now',
    },
    config: 'Configuration',
    configSame: 'All servers have the same configuration, but for what is of each one.',
    configDiffers: (n: number): string =>
      n === 1 ? '1 setting differs between servers.' : `${n} settings differ between servers.`,
    setting: 'Setting',
    differs: 'differs',
    onlyDifferences: 'Only differences',
    refused: (words: string): string =>
      `These servers do not allow ${words}: add them to 4lw.commands.whitelist to see more.`,
    unknown: 'unknown',
    noTls: 'no TLS',
    expires: (days: number): string => (days < 0 ? 'ended' : `in ${days} days`),
  },
} as const;
