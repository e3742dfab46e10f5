# Completion of spark-stage(1) for fish. The program itself tells what may come next.
function __spark_stage_words
    set -l typed (commandline -opc) (commandline -ct)
    for one in (timeout 2 spark-stage complete -- $typed[2..-1] 2>/dev/null)
        if test "$one" = ":files"
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $one
        end
    end
end
complete -c spark-stage -f -a '(__spark_stage_words)'
