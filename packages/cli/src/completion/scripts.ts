/**
 * What the shells run. All of them ask `meerkat complete` for what can stand at the cursor: a first line that says what
 * follows (:words, :paths: no blank behind, :files: what files there are), then a candidate a line, and behind a tab what it
 * means.
 */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type ShellName = (typeof SHELLS)[number];

/*
 * Bash breaks words at : and = and replaces only what stands behind the last of them, so that much is taken off each candidate.
 * The line is sent whole, and taken apart by us.
 */
const BASH = `# completion of meerkat for bash:  eval "$(meerkat completion bash)"
_meerkat() {
  local line=\${COMP_LINE:0:COMP_POINT} current kind= before= candidate
  current=\${line##*[[:space:]]}
  [[ $current == *[:=]* ]] && before=\${current%"\${current##*[:=]}"}
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS=$'\\t' read -r candidate _; do
      candidate=\${candidate#"$before"}
      [[ $current == [\\"\\']* ]] || printf -v candidate %q "$candidate"
      COMPREPLY+=("$candidate")
    done
  } < <(meerkat complete --line "$line" 2>/dev/null)
  case $kind in
    :files) compopt -o default ;;
    :paths) compopt -o nospace ;;
  esac
}
complete -F _meerkat meerkat
`;

const ZSH = `#compdef meerkat
# completion of meerkat for zsh:  eval "$(meerkat completion zsh)", behind compinit
_meerkat() {
  local kind line
  local -a lines values shown
  lines=("\${(@f)$(meerkat complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  kind=\${lines[1]}
  shift lines
  for line in "\${lines[@]}"; do
    [[ -n $line ]] || continue
    values+=("\${line%%$'\\t'*}")
    if [[ $line == *$'\\t'?* ]]; then shown+=("\${line%%$'\\t'*}  -- \${line#*$'\\t'}"); else shown+=("\${line%%$'\\t'*}"); fi
  done
  case $kind in
    :files) _files ;;
    :paths) compadd -S '' -d shown -a values ;;
    *) compadd -l -d shown -a values ;;
  esac
}
compdef _meerkat meerkat
`;

const FISH = `# completion of meerkat for fish:  meerkat completion fish | source
function __meerkat_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l lines (meerkat complete -- $words[2..-1] "$current" 2>/dev/null)
  if test "$lines[1]" = :files
    __fish_complete_path "$current"
  else if test (count $lines) -gt 1
    printf '%s\\n' $lines[2..-1]
  end
end
complete -c meerkat -f -a '(__meerkat_complete)'
`;

export const SCRIPTS: Readonly<Record<ShellName, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
