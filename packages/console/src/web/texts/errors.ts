/** Errors, and what can be done. */
export const ERRORS_TEXTS = {
  errors: {
    NONODE: { title: 'It is not there', hint: 'It has been deleted, or never existed.' },
    NOAUTH: {
      title: 'No permission',
      hint: 'Its ACL does not permit this. Log in as another user, or ask an administrator of the znode.',
    },
    AUTHFAILED: { title: 'The service refuses these credentials', hint: 'Check user and password, and the method.' },
    BADVERSION: { title: 'Changed by another client', hint: 'Look at what is there now, and decide again.' },
    NODEEXISTS: { title: 'It is there already', hint: 'Choose another name, or change the one that is there.' },
    NOTEMPTY: { title: 'It has children', hint: 'Delete it with everything below it, or its children first.' },
    CONNECTIONLOSS: {
      title: 'The connection broke',
      hint: 'The change may or may not have happened: look, before you repeat it.',
    },
    away: { title: 'No server answers', hint: 'Check that the servers run. The console keeps trying by itself.' },
    CONNECTFAILED: {
      title: 'No server answers',
      hint: 'Check that the servers run and can be reached from the console.',
    },
    TIMEOUT: { title: 'No answer in time', hint: 'The service is slow or away. A change may still happen.' },
    REQUESTTIMEOUT: { title: 'No answer in time', hint: 'The service is slow or away. A change may still happen.' },
    SESSIONLOST: { title: 'No server answers', hint: 'The session may be over. The console keeps trying by itself.' },
    SESSIONEXPIRED: { title: 'The session is over', hint: 'The service has ended it. The console begins another one.' },
    UNIMPLEMENTED: {
      title: 'This server is too old for that',
      hint: 'Servers before 3.5 cannot create what this console creates, those before 3.5.4 nothing with a time to live. Reading, saving and deleting work.',
    },
    QUOTAEXCEEDED: { title: 'A quota is used up', hint: 'Raise the quota, or delete something below it.' },
    RECONFIGDISABLED: {
      title: 'The servers keep their members',
      hint: 'Set reconfigEnabled=true in zoo.cfg of every server, and restart one after the other.',
    },
    RECONFIGINPROGRESS: { title: 'Another change is in progress', hint: 'Continue when it has completed.' },
    NEWCONFIGNOQUORUM: {
      title: 'Too few servers are ready',
      hint: 'A quorum of the new members has to follow the leader: start them, wait until they are up to date, and continue.',
    },
    BADARGUMENTS: { title: 'The service cannot take that', hint: "The leader's log says what is wrong with it." },
    'members-refused': {
      title: 'No permission to change members',
      hint: 'It takes the right to write /zookeeper/config: log in as the super user, as a rule.',
    },
    weights: {
      title: 'Members are not changed one by one here',
      hint: 'Give the whole list: "reconfig -file" of meerkat shell.',
    },
    'end-unknown': { title: 'It is not there', hint: 'It has ended already.' },
    'end-refused': {
      title: 'No permission to end sessions',
      hint: 'It takes all permissions of the root: log in as the super user, as a rule.',
    },
    'end-plain': { title: 'The credentials would be read on the way', hint: 'Start the console with --https.' },
    'end-sasl': {
      title: 'Sessions are not ended by who logs in with SASL',
      hint: 'Log in with digest or a certificate that has all permissions of the root.',
    },
    'end-no-quorum': { title: 'There is no quorum', hint: 'Nothing was ended. Look at the servers.' },
    'end-unsupported': {
      title: 'These servers end no sessions of others',
      hint: "Apache's have no such command. Deleting its ephemeral znodes takes from it what it holds.",
    },
    'end-unreachable': {
      title: 'No admin port answers',
      hint: 'Sessions are ended there. Start the console at the servers, or open their ports: admin.serverAddress, and --http-port here.',
    },
    'end-nowhere': { title: 'Sessions are not ended here', hint: 'The console was not told of admin ports.' },
    'end-unconfirmed': {
      title: 'Whether it has ended is not known',
      hint: 'It was asked for, and may happen yet: look, before you repeat it.',
    },
    'no-history': { title: 'No history', hint: 'Start the console with --dir or --admin.' },
    archive: {
      title: 'The files do not show that',
      hint: 'Choose a moment that the retained log and its snapshots reach.',
    },
    'read-only': { title: 'This console only reads', hint: 'Start it with --write to change znodes.' },
    'too-large': { title: 'Too large for the console', hint: 'The command line has no such limit.' },
    offline: { title: 'The console does not answer', hint: 'Check that "meerkat console" still runs.' },
  } as Readonly<Record<string, { readonly title: string; readonly hint: string }>>,
} as const;
