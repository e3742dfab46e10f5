// Which jobs staged in one of their steps: the epilog of a job sees the options of its submission alone, not
// those of an srun inside of it.
#ifndef SPARK_SLURM_MARK_H
#define SPARK_SLURM_MARK_H

#include <stdbool.h>
#include <stdint.h>

// Beside the daemon's socket, so that the marks go with the daemon's runtime folder. A mark that can't be
// made is not missed for long: without it the daemon ends the lease when it finds no process of the job.
void mark_job(const char* socket, uint32_t job);
// Whether there was one; afterwards there is none.
bool take_mark(const char* socket, uint32_t job);

#endif
