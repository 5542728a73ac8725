// `npm run build:deb -- [--arch x64|arm64] [--out DIRECTORY] [--quick] [--executable FILE]`: builds a package for
// Debian and Ubuntu from the single executable.
//
//   --quick        low compression, for tests
//   --executable   the single executable; built if not given
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = join(ROOT, 'deploy/debian');
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
const MAINTAINER = 'Meerkat maintainers <maintainers@meerkat.invalid>';

const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: process.arch },
    out: { type: 'string' },
    quick: { type: 'boolean', default: false },
    executable: { type: 'string' },
  },
});
const architecture = ARCHITECTURES[values.arch];
if (architecture === undefined)
  throw new Error(`--arch is ${values.arch}; there are ${Object.keys(ARCHITECTURES).join(' and ')}`);
const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8'));
const out = resolve(values.out ?? join(ROOT, 'dist'));
const work = mkdtempSync(join(tmpdir(), 'meerkat-deb-'));
try {
  const tree = join(work, 'tree');
  const put = (path, content, mode = 0o644) => {
    const file = join(tree, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    writeFileSync(file, content, { mode });
  };
  const copy = (from, path, mode) => put(path, readFileSync(join(ROOT, from)), mode);
  const zip = (text) => gzipSync(text, { level: 9 });

  const single = values.executable ?? join(work, 'meerkat');
  if (values.executable === undefined) {
    execFileSync(process.execPath, [join(ROOT, 'deploy/single/build.mjs'), '--arch', values.arch, '--out', single], {
      stdio: 'inherit',
    });
  }
  put('usr/bin/meerkat', readFileSync(single), 0o755);
  copy('deploy/systemd/meerkat.service', 'lib/systemd/system/meerkat.service');
  copy('deploy/debian/zoo.cfg', 'etc/meerkat/zoo.cfg');
  copy('deploy/debian/default', 'etc/default/meerkat');

  // The output of the command, run from source: the executable of another architecture would need slow emulation.
  const meerkat = (...words) =>
    execFileSync(process.execPath, [join(ROOT, 'packages/cli/bin/meerkat.js'), ...words], { encoding: 'utf8' });
  put('usr/share/bash-completion/completions/meerkat', meerkat('completion', 'bash'));
  put('usr/share/zsh/vendor-completions/_meerkat', meerkat('completion', 'zsh'));
  put('usr/share/fish/vendor_completions.d/meerkat.fish', meerkat('completion', 'fish'));
  put('usr/share/man/man1/meerkat.1.gz', zip(manualPage(meerkat('--help'))));

  const doc = 'usr/share/doc/meerkat';
  copy('deploy/debian/copyright', `${doc}/copyright`);
  put(`${doc}/licences.gz`, zip(licences()));
  put(`${doc}/NEWS.gz`, zip(readFileSync(join(ROOT, 'CHANGELOG.md'))));
  put(`${doc}/changelog.gz`, zip(changelog()));
  copy('docs/configuration.md', `${doc}/configuration.md`);
  put('usr/share/lintian/overrides/meerkat', readFileSync(join(HERE, 'lintian-overrides')));

  for (const name of ['postinst', 'prerm', 'postrm']) put(`DEBIAN/${name}`, readFileSync(join(HERE, name)), 0o755);
  put('DEBIAN/conffiles', '/etc/default/meerkat\n/etc/meerkat/zoo.cfg\n');
  put('DEBIAN/control', control(kilobytes(tree)));
  const sums = execFileSync('find', ['usr', 'lib', '-type', 'f', '-exec', 'md5sum', '{}', '+'], { cwd: tree });
  put('DEBIAN/md5sums', sums);

  mkdirSync(out, { recursive: true });
  const file = join(out, `meerkat_${version}_${architecture}.deb`);
  const compression = values.quick ? ['-Zgzip', '-z1'] : ['-Zxz', '-z6'];
  execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', tree, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function control(installedKilobytes) {
  return `Package: meerkat
Version: ${version}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${installedKilobytes}
Depends: adduser, init-system-helpers (>= 1.52), libc6 (>= 2.28), libgcc-s1 (>= 3.4), libstdc++6 (>= 5.2)
Recommends: systemd
Section: net
Priority: optional
Description: coordination service that speaks ZooKeeper
 A replicated tree of small pieces of data with sessions, watches and totally
 ordered, durable writes, from which locks, elections, configuration and group
 membership are built. Clients, data directories and ensembles of Apache
 ZooKeeper work with it.
 .
 This package has the server, as a service of systemd, and the command meerkat
 for data, locks, watches and diagnosis. It needs neither Java nor Node.js.
`;
}

/** The Debian changelog; the changes are in NEWS.gz. */
function changelog() {
  const date = new Date(1000 * Number(process.env.SOURCE_DATE_EPOCH ?? commitTime()))
    .toUTCString()
    .replace('GMT', '+0000');
  return `meerkat (${version}) unstable; urgency=medium

  * See NEWS.gz.

 -- ${MAINTAINER}  ${date}
`;
}

/** Commit time in seconds; the current time without a repository. */
function commitTime() {
  try {
    return execFileSync('git', ['log', '-1', '--format=%ct'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return Date.now() / 1000;
  }
}

/** The licence texts of everything in the executable, Node.js first. */
function licences() {
  const texts = [];
  const names = /^licen[cs]e/i;
  const add = (name, directory) => {
    if (!existsSync(directory)) return;
    for (const file of readdirSync(directory).filter((found) => names.test(found)))
      texts.push(`==== ${name}\n\n${readFileSync(join(directory, file), 'utf8')}\n`);
  };
  add('Node.js', join(ROOT, 'deploy/tools/node_modules/node-24'));
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [path, { dev }] of Object.entries(lock.packages))
    if (path.startsWith('node_modules/') && dev !== true && !path.startsWith('node_modules/@meerkat/'))
      add(path.slice(13), join(ROOT, path));
  return texts.join('\n');
}

/** One manual page for all commands, from the output of --help. */
function manualPage(help) {
  const text = help
    .replaceAll('\\', '\\e')
    .replace(/^([.'])/gm, '\\&$1')
    .replaceAll('-', '\\-');
  return `.TH MEERKAT 1 "" "meerkat ${version}" "User Commands"
.SH NAME
meerkat \\- coordination service that speaks ZooKeeper, and its tools
.SH SYNOPSIS
.B meerkat
.I command
[\\fIarguments\\fR] [\\fIoptions\\fR]
.SH DESCRIPTION
.nf
${text}
.fi
.SH FILES
.TP
.I /etc/meerkat/zoo.cfg
configuration of the server that meerkat.service runs
.TP
.I /var/lib/meerkat
its data
.SH SEE ALSO
.BR systemctl (1),
.BR journalctl (1)
`;
}

function kilobytes(tree) {
  return Number.parseInt(execFileSync('du', ['-sk', '--apparent-size', tree], { encoding: 'utf8' }), 10);
}
