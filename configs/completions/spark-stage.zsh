#compdef spark-stage
# Completion of spark-stage(1) for zsh. The program itself tells what may come next.
local -a offered
offered=(${(f)"$(timeout 2 spark-stage complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
if [[ $offered == :files ]]; then
  _files
else
  compadd -- $offered
fi
