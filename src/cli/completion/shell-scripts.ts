/**
 * Scripts with which shells complete. Each asks `mco completion candidates` for what the last word may become; its lines
 * are `WORD<tab>MEANING`, or `:file` or `:folder` where the shell's own names of files belong.
 */
export const shellScripts = {
  bash: `# bash completion of mco: source <(mco completion bash)
_mco() {
  local line=\${COMP_LINE:0:COMP_POINT} current candidate
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=\${words[\${#words[@]} - 1]}
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    case $candidate in
      :file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "\${current#--*=}"); return ;;
      :folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "\${current#--*=}"); return ;;
      */) compopt -o nospace ;;
    esac
    # Of --pool=worker, bash replaces what stands behind the sign.
    [[ $current == --*=* && $COMP_WORDBREAKS == *=* ]] && candidate=\${candidate#--*=}
    COMPREPLY+=("$candidate")
  done < <("\${words[0]}" completion candidates -- "\${words[@]:1}" 2> /dev/null)
}
complete -F _mco mco
`,
  zsh: `#compdef mco
# zsh completion of mco: source <(mco completion zsh), after compinit
_mco() {
  local line candidate
  local -a named open
  while IFS= read -r line; do
    candidate=\${line%%$'\\t'*}
    case $candidate in
      :file) compset -P '--*='; _files; return ;;
      :folder) compset -P '--*='; _files -/; return ;;
      */) open+=("$candidate") ;;
      *) named+=("\${candidate//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <("\${words[1]}" completion candidates -- "\${(@)words[2,CURRENT]}" 2> /dev/null)
  (( \${#open} )) && compadd -S '' -- $open
  (( \${#named} )) && _describe mco named
  return 0
}
compdef _mco mco
`,
  fish: `# fish completion of mco: mco completion fish | source
function __mco_candidates
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] completion candidates -- $words[2..] 2> /dev/null)
  switch "$lines[1]"
    case ':file'
      __fish_complete_path (commandline -ct)
    case ':folder'
      __fish_complete_directories (commandline -ct) ''
    case '*'
      string join \\n -- $lines
  end
end
complete -c mco -f -a '(__mco_candidates)'
`,
} as const;
