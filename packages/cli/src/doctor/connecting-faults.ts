import type { FaultEntry } from './fault-entry.ts';

export type ConnectingFault =
  | 'name-unknown'
  | 'name-service-silent'
  | 'address-dead'
  | 'port-closed'
  | 'no-route'
  | 'server-silent'
  | 'not-zookeeper'
  | 'tls-expected'
  | 'tls-not-spoken'
  | 'certificate-authority-unknown'
  | 'certificate-name-differs'
  | 'certificate-expired'
  | 'certificate-missing'
  | 'tls-versions-differ'
  | 'tls-failed'
  | 'closed-at-once'
  | 'too-many-connections'
  | 'word-not-allowed'
  | 'authentication-required'
  | 'credentials-refused'
  | 'chroot-missing'
  | 'root-not-readable'
  | 'session-refused'
  | 'request-too-long';

/** Why a client cannot connect. */
export const CONNECTING: Readonly<Record<ConnectingFault, FaultEntry>> = {
  'name-unknown': {
    about: 'connecting',
    meaning: 'the name of the server is not known',
    advice: 'correct the name in the connect string, or add it to the name service',
  },
  'name-service-silent': {
    about: 'connecting',
    meaning: 'the name service does not answer',
    advice: 'look at /etc/resolv.conf and at the name server it names',
  },
  'address-dead': {
    about: 'connecting',
    meaning: 'no server listens at some addresses of the name: clients that try these lose time',
    advice:
      'take the wrong addresses out of the name service or /etc/hosts, or let the server listen there (clientPortAddress)',
  },
  'port-closed': {
    about: 'connecting',
    meaning: 'the machine answers, but nothing listens at the port',
    advice: 'start the server; if it runs, compare clientPort and clientPortAddress with the connect string',
  },
  'no-route': {
    about: 'connecting',
    meaning: 'the machine cannot be reached, or does not answer',
    advice: 'look at the network and at firewalls, which drop packets silently; is the machine up?',
  },
  'server-silent': {
    about: 'connecting',
    meaning: 'the port is open, the process answers nothing',
    advice:
      'the process stands still (stopped, swapping, in a long collection) or this is no client port: look at it with top and at its log',
  },
  'not-zookeeper': {
    about: 'connecting',
    meaning: 'another kind of service answers',
    advice: 'correct the port: clients use clientPort, not the admin port or the port for metrics',
  },
  'tls-expected': {
    about: 'connecting',
    meaning: 'the port speaks TLS, and was asked without',
    advice: 'use --tls and the like, or the port of clientPort',
  },
  'tls-not-spoken': {
    about: 'connecting',
    meaning: 'the port does not speak TLS, and was asked with it',
    advice: 'use the port of secureClientPort, or leave TLS out',
  },
  'certificate-authority-unknown': {
    about: 'connecting',
    meaning: 'the authority of the server’s certificate is not trusted here',
    advice: 'name the authority of the server with --tls-ca',
  },
  'certificate-name-differs': {
    about: 'connecting',
    meaning: 'the certificate of the server is for other names',
    advice: 'use a name of the certificate in the connect string, or issue a certificate with this one',
  },
  'certificate-expired': {
    about: 'connecting',
    meaning: 'the certificate of the server has expired, or is not valid yet',
    advice: 'renew it; if its dates are right, the clock of this machine is wrong',
  },
  'certificate-missing': {
    about: 'connecting',
    meaning: 'the server wants a certificate, and got none that it accepts',
    advice: 'give one that its trust store knows with --tls-cert and --tls-key, or set ssl.clientAuth there',
  },
  'tls-versions-differ': {
    about: 'connecting',
    meaning: 'client and server share no version of TLS or no cipher suite',
    advice: 'allow TLSv1.2 or TLSv1.3 on both ends (ssl.enabledProtocols, ssl.ciphersuites)',
  },
  'tls-failed': {
    about: 'connecting',
    meaning: 'the TLS handshake failed for another reason',
    advice: 'look at the log of the server for the same moment',
  },
  'closed-at-once': {
    about: 'connecting',
    meaning: 'the server closes the connection at once',
    advice: 'most often a limit: maxClientCnxns for one address, maxCnxns, the limit of open files; its log names it',
  },
  'too-many-connections': {
    about: 'connecting',
    meaning: 'a server has as many connections as it allows',
    advice: 'find who opens so many (meerkat sessions), close them, or raise maxClientCnxns or maxCnxns',
  },
  'word-not-allowed': {
    about: 'connecting',
    meaning: 'a four-letter word is not allowed, so less can be said',
    advice: 'add it to 4lw.commands.whitelist',
    isNote: true,
  },
  'authentication-required': {
    about: 'connecting',
    meaning: 'the server serves only authenticated clients',
    advice:
      'give credentials with --sasl or --auth; the keys are sessionRequireClientSASLAuth and enforce.auth.enabled',
  },
  'credentials-refused': {
    about: 'connecting',
    meaning: 'the server refuses the credentials',
    advice: 'compare user, password and scheme with those of the server',
  },
  'chroot-missing': {
    about: 'connecting',
    meaning: 'the chroot does not exist, so every request fails',
    advice: 'create it once without chroot: meerkat create -p <path>',
  },
  'root-not-readable': {
    about: 'connecting',
    meaning: 'the ACL does not let this client read where its paths begin',
    advice: 'give the credentials with --auth, or look at meerkat acl',
    isNote: true,
  },
  'session-refused': {
    about: 'connecting',
    meaning: 'the server answers questions, and gives no session',
    advice: 'look at its log; a server that has just lost its leader, or is overloaded, does that',
  },
  'request-too-long': {
    about: 'connecting',
    meaning: 'a client was disconnected: its request is longer than the server takes',
    advice: 'raise jute.maxbuffer on all servers and clients, or write less at once',
  },
};
