#compdef spark-stage
# Completion of spark-stage(1) for zsh. The program itself tells what may come next.
local -a offered words_offered
offered=(${(f)"$(timeout 2 spark-stage complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
words_offered=(${offered:#:files})
(( $#words_offered )) && compadd -- $words_offered
(( $offered[(Ie):files] )) && _files
return 0
