/** The login. */
export const LOGIN_TEXTS = {
  key: {
    title: 'This console has a key',
    text: 'Open the address that "meerkat console" has printed, or enter the key at its end.',
    label: 'Key',
    enter: 'Enter',
  },
  login: {
    title: (cluster: string): string => `Log in to ${cluster}`,
    how: 'How',
    own: 'With the credentials of the console',
    none: 'Without credentials',
    digest: 'Digest: user and password',
    sasl: 'SASL DIGEST-MD5: user and password',
    certificate: 'Client certificate',
    user: 'User',
    password: 'Password',
    pem: 'Certificate and key, PEM',
    passphrase: 'Passphrase of the key, if it has one',
    submit: 'Log in',
    busy: 'Connecting…',
    digestHint: 'ZooKeeper does not check digest credentials: a wrong password only opens nothing.',
    servers: (servers: string): string => `Servers: ${servers}`,
  },
} as const;
