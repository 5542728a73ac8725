/** A line of the shell, and its expected output. */
export interface ScriptLine {
  readonly line: string;
  /** The whole of its standard output; or a pattern. Default: nothing. */
  readonly prints?: string | RegExp;
  /** Expected in its message on standard error. Default: the line succeeds without a message. */
  readonly fails?: RegExp;
  /** Prefixes of the watch events that it triggers; they may arrive a little later. */
  readonly events?: readonly string[];
}

const STAT = /^czxid +0x[0-9a-f]+\nctime[\s\S]*\nnumChildren +\d+.*\n$/;

/**
 * Each command of zkCli 3.8, with each of its options; then the additions of this shell. Checks for the words that
 * scripts expect in zkCli's output.
 */
export const SESSION_SCRIPT: readonly ScriptLine[] = [
  // create
  { line: 'create /app hello', prints: 'Created /app\n' },
  { line: 'create /app again', fails: /Node already exists: \/app/ },
  { line: 'create /nope/x y', fails: /Node does not exist: \/nope/ },
  { line: 'create /app/none', prints: 'Created /app/none\n' },
  { line: 'create -e /app/eph mine', prints: 'Created /app/eph\n' },
  { line: 'create /app/eph/child x', fails: /Ephemerals cannot have children: \/app\/eph/ },
  { line: 'create -s /app/seq- first', prints: 'Created /app/seq-0000000002\n' },
  { line: 'create -s -e /app/seq- second', prints: 'Created /app/seq-0000000003\n' },
  { line: 'create -c /app/container', prints: 'Created /app/container\n' },
  { line: 'create -t 3600000 /app/ttl t', prints: 'Created /app/ttl\n' },
  { line: 'create -c -e /app/both', fails: /container/ },
  { line: 'create /app/acl data world:anyone:cdrwa', prints: 'Created /app/acl\n' },
  { line: 'create /app/bad data foo', fails: /scheme:id:perms/ },
  { line: 'create /text "two words"', prints: 'Created /text\n' },
  { line: 'create /json {"debug":true}', prints: 'Created /json\n' },
  // get
  { line: 'get /app', prints: 'hello\n' },
  { line: 'get -s /app', prints: /^hello\n?[\s\S]*czxid/ },
  { line: 'get /text', prints: 'two words\n' },
  { line: 'get /json', prints: '{\n  "debug": true\n}\n' },
  { line: 'get -b /app', prints: 'aGVsbG8=\n' },
  { line: 'get -x /app', prints: /68 ?65 ?6c ?6c ?6f/ },
  { line: 'get /nope', fails: /Node does not exist: \/nope/ },
  // set
  { line: 'set /app world' },
  { line: 'set -s /app again', prints: STAT },
  { line: 'set -v 7 /app x', fails: /version No is not valid : \/app/ },
  { line: 'set /app last -v 2' },
  { line: 'set -b /text dHdv' },
  { line: 'get /text', prints: 'two\n' },
  // ls and stat
  { line: 'ls /', prints: 'app\njson\ntext\nzookeeper\n' },
  { line: 'ls -R /app', prints: /^\/app\n\/app\/acl\n\/app\/container\n/ },
  { line: 'ls -s /', prints: /^name +version .*\napp +3 / },
  { line: 'stat /app', prints: /\/?[\s\S]*czxid +0x[\s\S]*version +3\n/ },
  { line: 'stat /nope', fails: /Node does not exist: \/nope/ },
  // The session, the server and this program.
  { line: 'sync /app', prints: 'Sync is OK\n' },
  { line: 'version', prints: /^ZooKeeper CLI version: / },
  { line: 'getEphemerals', prints: '/app/eph\n/app/seq-0000000003\n' },
  { line: 'getEphemerals /app/e', prints: '/app/eph\n' },
  { line: 'getAllChildrenNumber /app', prints: '7\n' },
  { line: 'config', prints: /./ },
  { line: 'config -c', prints: / .*\n/ },
  { line: 'config -s', prints: /czxid/ },
  { line: 'reconfig', fails: /--members/ },
  { line: 'reconfig -add server.2=127.0.0.1:2888:3888:participant;2182', fails: /reconfigEnabled/ },
  { line: 'reconfig -v 1a -remove 2', fails: /reconfigEnabled/ },
  { line: 'reconfig -members server.2=127.0.0.1:2888:3888;2182', fails: /reconfigEnabled/ },
  { line: 'reconfig -file /nonexistent', fails: /no such file/ },
  // One-shot watches.
  { line: 'get -w /app', prints: 'last\n' },
  { line: 'set /app watched', events: ['type:NodeDataChanged path:/app'] },
  { line: 'set /app unwatched' },
  { line: 'ls -w /app', prints: /^acl\n/ },
  { line: 'create /app/new n', prints: 'Created /app/new\n', events: ['type:NodeChildrenChanged path:/app'] },
  { line: 'stat -w /app/new', prints: /czxid/ },
  { line: 'delete /app/new', events: ['type:NodeDeleted path:/app/new'] },
  { line: 'config -w', prints: /./ },
  // Persistent watches.
  { line: 'addWatch -m PERSISTENT /app' },
  { line: 'set /app one', events: ['type:NodeDataChanged path:/app'] },
  { line: 'create /app/two 2', prints: 'Created /app/two\n', events: ['type:NodeChildrenChanged path:/app'] },
  { line: 'printwatches', prints: 'printwatches is on\n' },
  { line: 'printwatches off' },
  { line: 'set /app unprinted' },
  { line: 'printwatches', prints: 'printwatches is off\n' },
  { line: 'printwatches on' },
  { line: 'removewatches /app' },
  { line: 'set /app silent' },
  { line: 'removewatches /app', fails: /No such watcher for \/app/ },
  { line: 'addWatch /tree' },
  { line: 'create /tree t', prints: 'Created /tree\n', events: ['type:NodeCreated path:/tree'] },
  { line: 'create /tree/a a', prints: 'Created /tree/a\n', events: ['type:NodeCreated path:/tree/a'] },
  { line: 'removewatches /tree -r' },
  { line: 'addWatch /tree -m PERSISTENT' },
  { line: 'removewatches /tree -r', fails: /No such watcher for \/tree/ },
  { line: 'removewatches /tree -p -l' },
  { line: 'ls -w /tree', prints: 'a\n' },
  { line: 'removewatches /tree -d', fails: /No such watcher for \/tree/ },
  { line: 'removewatches /tree -c' },
  { line: 'get -w /tree', prints: 't\n' },
  { line: 'removewatches /tree -a' },
  { line: 'set /tree silent' },
  { line: 'addWatch -m SOMETIMES /tree', fails: /PERSISTENT_RECURSIVE/ },
  // ACLs.
  { line: 'getAcl /app', prints: "'world,'anyone\n: cdrwa\n" },
  { line: 'getAcl -s /app', prints: /^'world,'anyone\n: cdrwa\nczxid/ },
  { line: 'whoami', prints: 'Auth scheme: User\nip: 127.0.0.1\n' },
  { line: 'addauth digest alice:secret' },
  { line: 'whoami', prints: /^Auth scheme: User\n(?=[\s\S]*ip: 127.0.0.1\n)(?=[\s\S]*digest: alice\n)/ },
  { line: 'create /guarded g auth::cdrwa', prints: 'Created /guarded\n' },
  { line: 'getAcl /guarded', prints: /^'digest,'alice:.+=\n: cdrwa\n$/ },
  { line: 'setAcl /guarded world:anyone:ra' },
  { line: 'set /guarded x', fails: /Insufficient permission : \/guarded/ },
  { line: 'setAcl -s /guarded world:anyone:cdrwa', prints: STAT },
  { line: 'setAcl -v 9 /guarded world:anyone:r', fails: /version No is not valid : \/guarded/ },
  { line: 'setAcl /guarded nobody:x:r', fails: /Acl is not valid : \/guarded/ },
  { line: 'setAcl -R /tree world:anyone:cdra' },
  { line: 'getAcl /tree/a', prints: "'world,'anyone\n: cdra\n" },
  // Quotas.
  { line: 'setquota -n 30 /app', prints: /\/app +9 +30/ },
  { line: 'setquota -b 1000 /app', prints: /1000/ },
  { line: 'setquota -N 40 /app', prints: /40/ },
  { line: 'setquota -B 2000 /app', prints: /2000|2\.0 KiB/ },
  {
    line: 'listquota /app',
    prints: new RegExp(
      '^absolute path is /zookeeper/quota/app/zookeeper_limits\n' +
        'Output quota for /app count=30,bytes=1000=;byteHardLimit=2000;countHardLimit=40\n' +
        'Output stat for /app count=9,bytes=\\d+\n$',
    ),
  },
  { line: 'delquota -n /app', prints: /./ },
  { line: 'delquota -b -N -B /app' },
  {
    line: 'listquota /app',
    prints: 'absolute path is /zookeeper/quota/app/zookeeper_limits\nquota for /app does not exist.\n',
    fails: /^$/,
  },
  { line: 'delquota /app', fails: /no quota/ },
  { line: 'setquota /app', fails: /no limit/ },
  // Deleting.
  { line: 'delete /app', fails: /Node not empty: \/app/ },
  { line: 'delete -v 9 /app/none', fails: /version No is not valid : \/app\/none/ },
  { line: 'delete /app/none' },
  { line: 'delete /nope', fails: /Node does not exist: \/nope/ },
  { line: 'deleteall /app -b 100' },
  { line: 'deleteall /tree' },
  { line: 'deleteall /nope', fails: /Node does not exist: \/nope/ },
  { line: 'ls /', prints: 'guarded\njson\ntext\nzookeeper\n' },
  // Additions of this shell: the current znode, multi-line values, other formats.
  { line: 'create -p /a/b/c', prints: 'Created /a/b/c\n' },
  { line: 'cd /a' },
  { line: 'cd b' },
  { line: 'pwd', prints: '/a/b\n' },
  { line: 'ls', prints: 'c\n' },
  { line: 'ls ..', prints: 'b\n' },
  { line: 'cd nowhere', fails: /Node does not exist: \/a\/b\/nowhere/ },
  { line: 'set ./c <<END\n{\n  "on": 1\n}\nEND' },
  { line: 'get c # a comment', prints: '{\n  "on": 1\n}\n' },
  { line: "set c 'first\nsecond'; get c", prints: 'first\nsecond\n' },
  { line: 'cd -; pwd', prints: '/a\n' },
  { line: 'ls -o json .', prints: '[\n  {"path":"/a/b","name":"b"}\n]\n' },
  { line: 'getACL /a', fails: /Command not found: getACL \(did you mean getAcl\?/ },
  { line: 'ls --unknown', fails: /unknown option '--unknown'/ },
  { line: 'help getAcl', prints: /^Show who may do what with a znode\.\n\nUsage: getAcl \[options\] <path>\n/ },
  { line: 'help', prints: /\n {2}removewatches +take watches off a znode\n/ },
  // A new session has neither the ephemeral znodes nor the watches of the first.
  { line: 'create -e /mine', prints: 'Created /mine\n' },
  { line: 'close' },
  { line: 'ls /', fails: /Not connected/ },
  { line: 'connect' },
  { line: 'ls /', prints: 'a\nguarded\njson\ntext\nzookeeper\n' },
  { line: 'pwd', prints: '/\n' },
];
