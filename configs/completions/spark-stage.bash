# Completion of spark-stage(1) for bash. The program itself tells what may come next.
_spark_stage() {
  local word=${COMP_WORDS[COMP_CWORD]} offered
  offered=$(timeout 2 spark-stage complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $offered == :files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
  fi
}
complete -F _spark_stage spark-stage
