import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardOrphan } from './orphan-guard.ts';
import { freePort } from './server-process.ts';

/** A private Kerberos realm: Debian's krb5kdc on a free loopback port. Does not need root. */
export class KerberosRealm {
  readonly name: string;
  readonly directory: string;
  readonly #child: ReturnType<typeof spawn>;

  static async start(name = 'TEST.EXAMPLE'): Promise<KerberosRealm> {
    const directory = mkdtempSync(join(tmpdir(), 'interop-krb5-'));
    mkdirSync(join(directory, 'db'));
    const port = await freePort();
    writeFileSync(
      join(directory, 'krb5.conf'),
      `[libdefaults]
  default_realm = ${name}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  permitted_enctypes = aes256-sha2 aes128-sha2 aes256-cts aes128-cts
[realms]
  ${name} = {
    kdc = 127.0.0.1:${port}
  }
[domain_realm]
  localhost = ${name}
`,
    );
    writeFileSync(
      join(directory, 'kdc.conf'),
      `[kdcdefaults]
  kdc_listen = 127.0.0.1:${port}
  kdc_tcp_listen = 127.0.0.1:${port}
[realms]
  ${name} = {
    database_name = ${join(directory, 'db', 'principal')}
    key_stash_file = ${join(directory, 'db', 'stash')}
    acl_file = ${join(directory, 'db', 'acl')}
    max_life = 1h
    supported_enctypes = aes256-sha2:normal aes128-sha2:normal aes256-cts:normal aes128-cts:normal
  }
`,
    );
    const realm = new KerberosRealm(name, directory);
    const deadline = Date.now() + 60_000;
    while (!(await isListening(port))) {
      if (Date.now() > deadline) throw new Error('krb5kdc does not listen');
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return realm;
  }

  private constructor(name: string, directory: string) {
    this.name = name;
    this.directory = directory;
    this.#run('/usr/sbin/kdb5_util', ['create', '-r', name, '-s', '-P', 'master']);
    this.#child = spawn('/usr/sbin/krb5kdc', ['-n', '-r', name, '-P', join(directory, 'pid')], {
      env: this.environment,
      stdio: 'ignore',
    });
    guardOrphan(this.#child.pid, directory);
  }

  /** Environment of clients and servers of this realm. */
  get environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      KRB5_CONFIG: this.configPath,
      KRB5_KDC_PROFILE: join(this.directory, 'kdc.conf'),
      KRB5RCACHENAME: 'none:',
    };
  }

  get configPath(): string {
    return join(this.directory, 'krb5.conf');
  }

  /** Adds a principal with random keys, or renews them; returns a keytab with these and the file's previous keys. */
  addKeys(
    principal: string,
    encryptionTypes: string,
    keytab: string = `${principal.replace('/', '-')}.keytab`,
    attributes = '',
  ): string {
    const path = join(this.directory, keytab);
    this.#kadmin(`addprinc -randkey -e ${encryptionTypes} ${attributes} ${principal}`);
    this.#kadmin(`ktadd -k ${path} -e ${encryptionTypes} ${principal}`);
    return path;
  }

  /** A ticket cache with a fresh ticket. */
  login(principal: string, keytab: string, ...options: readonly string[]): string {
    const cache = `FILE:${join(this.directory, `${principal.replace('/', '-')}.cache`)}`;
    this.#run('/usr/bin/kinit', [...options, '-c', cache, '-kt', keytab, principal]);
    return cache;
  }

  dispose(): void {
    this.#child.kill('SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }

  #kadmin(query: string): void {
    this.#run('/usr/sbin/kadmin.local', ['-r', this.name, '-q', query]);
  }

  #run(command: string, args: readonly string[]): void {
    execFileSync(command, args, { env: this.environment, stdio: 'pipe' });
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
