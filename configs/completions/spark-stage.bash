# Completion of spark-stage(1) for bash. The program itself tells what may come next.
_spark_stage() {
  local word=${COMP_WORDS[COMP_CWORD]} offered
  mapfile -t offered < <(timeout 2 spark-stage complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  local one quoted
  for one in "${offered[@]}"; do
    if [[ $one == :files ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
    elif [[ -n $one && $one == "$word"* ]]; then
      printf -v quoted %q "$one"
      COMPREPLY+=("$quoted")
    fi
  done
}
complete -F _spark_stage spark-stage
